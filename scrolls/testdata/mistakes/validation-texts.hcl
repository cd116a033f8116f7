variable "port" {
  default = 1
  validation {
    condition     = var.port > 1024
    error_message = <<-EOT
      A port below 1024 needs root.
    EOT
  }
  validation {
    condition     = var.port > 80
    error_message = ""
  }
}

file "/etc/motd" { content = "x" }
