# with var-file:null.vars
variable "size" {
  type     = number
  nullable = false
}

file "/a" {
  content = "x"
}
