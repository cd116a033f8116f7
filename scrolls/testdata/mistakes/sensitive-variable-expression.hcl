# with var:pw=hunter2)
variable "pw" {
  type      = list(string)
  sensitive = true
}

file "/a" {
  content = "x"
}
