# with var:name=Web-
variable "name" {
  validation {
    condition     = can(regex("^[a-z-]*$", var.name))
    error_message = "The name \"${var.name}\" holds other than small letters."
  }
  validation {
    condition     = !endswith(var.name, "-")
    error_message = "The name ends with a dash."
  }
}
variable "many" {
  default = 3
  validation {
    condition     = "perhaps"
    error_message = "no"
  }
  validation {
    condition     = var.many < 3
    error_message = 5
  }
}
