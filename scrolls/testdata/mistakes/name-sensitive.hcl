# with var:pw=hunter2
variable "pw" {
  sensitive = true
}

name = var.pw
