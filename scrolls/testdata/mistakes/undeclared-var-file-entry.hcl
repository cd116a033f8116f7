# with var-file:typo.vars
variable "port" {
  default = 80
}

file "/a" {
  content = "x"
}
