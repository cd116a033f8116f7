# with var:pw=hunter2
variable "pw" {
  sensitive = true
}

locals {
  copy = "x${var.pw}"
}

file "/a" {
  content = parseint(var.pw, 10)
}

file "/b" {
  content = file(local.copy)
}

file "/c" {
  source = var.pw
}

job "d" {
  command = [for x in [var.pw] : parseint(x, 10)]
}
