# with var:pw=hunter2
variable "pw" {
  sensitive = true
}

file "x" {
  path    = "/${var.pw}"
  content = "x"
}

line "x" {
  path = "/a"
  line = var.pw
}
