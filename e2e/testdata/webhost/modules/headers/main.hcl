# Response headers, as a file that a server block includes.

variable "site" { type = string }

variable "headers" {
  type    = map(string)
  default = {}
}

variable "dir" {
  type    = string
  default = "/etc/nginx/headers"
}

locals {
  path  = "${var.dir}/${var.site}.conf"
  lines = [for name, value in var.headers : "add_header ${name} \"${value}\" always;"]
}

file "headers" {
  path    = local.path
  content = "${join("\n", local.lines)}\n"
}

output "include" {
  value = local.path
}
