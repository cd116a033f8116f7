variable "size" {
  type = text
}

file "/a" {
  content = "x"
}
