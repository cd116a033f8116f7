# with var:prot=1
variable "port" {
  default = 80
}

file "/a" {
  content = "x"
}
