variable "site" {
  default = "a"
}

file "/etc/${var.site}.conf" {
  content = "x"
}
