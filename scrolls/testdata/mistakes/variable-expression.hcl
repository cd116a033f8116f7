# with var:xs=[a,b]
variable "xs" {
  type = list(string)
}

file "/a" {
  content = "x"
}
