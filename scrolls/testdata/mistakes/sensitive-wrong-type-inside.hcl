# with var:pw={hunter2={}}
variable "pw" {
  type      = any
  sensitive = true
}

job "a" {
  env = var.pw
}
