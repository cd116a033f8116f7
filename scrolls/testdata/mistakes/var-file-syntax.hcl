# with var-file:syntax.vars
variable "size" {
  type = number
}
file "/a" {
  content = var.size
}
