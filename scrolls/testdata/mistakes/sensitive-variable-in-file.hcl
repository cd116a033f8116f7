# with var-file:secret.vars
variable "pw" {
  type      = number
  sensitive = true
}

variable "key" {
  sensitive = true
}

file "/a" {
  content = "x"
}
