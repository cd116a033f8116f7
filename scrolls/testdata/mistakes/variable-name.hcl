variable "a b" {
}

file "/a" {
  content = "x"
}
