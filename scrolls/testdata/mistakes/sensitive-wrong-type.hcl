# with var:pw=hunter2
variable "pw" {
  sensitive = true
}

job "a" {
  weight = var.pw
}
