# with var:dir=
variable "dir" {
  type = string
}

file "a" {
  path    = "${var.dir}a"
  content = "x"
}
