# with var:port=99999
variable "port" {
  type = number
  validation {
    condition     = var.port < 65536
    error_message = "A port is at most 65535, and not ${var.port}."
  }
}

file "/a" {
  content = "x"
}
