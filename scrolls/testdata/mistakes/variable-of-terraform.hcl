# with env:TF_VAR_size=3
variable "size" {}
file "/a" {
  content = var.size
}
