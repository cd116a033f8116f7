# with var:pw=hunter2
variable "pw" {
  type      = number
  sensitive = true
}

file "/a" {
  content = "x"
}
