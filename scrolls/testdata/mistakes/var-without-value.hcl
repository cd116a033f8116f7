# with var:port
variable "port" {
  default = 80
}

file "/a" {
  content = "x"
}
