variable "size" {
  type = number
}

file "/a" {
  content = "x"
}
