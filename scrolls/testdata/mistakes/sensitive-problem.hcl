# with var:pw=hunter2
variable "pw" {
  sensitive = true
}

file "/a" {
  content = "x"
  mode    = var.pw
}
