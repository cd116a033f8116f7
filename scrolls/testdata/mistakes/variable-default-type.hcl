variable "size" {
  type    = number
  default = "big"
}

file "/a" {
  content = "x"
}
