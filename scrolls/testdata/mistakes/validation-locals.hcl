variable "ports" {
  default = [80, 81]
  validation {
    condition     = local.highest < local.allowed
    error_message = "The port ${local.highest} is not below ${local.allowed}."
  }
}
locals {
  allowed = 81
  highest = max(var.ports...)
}
file "/a" {
  content = ""
}
