# with var:size=big
variable "size" {
  type = number
}

file "/a" {
  content = "x"
}
