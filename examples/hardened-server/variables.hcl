variable "contact" {
  type        = string
  default     = "ops@example.com"
  description = "Who is told about this host, in the login banner and in cron's mail."
}

variable "ssh_port" {
  type    = number
  default = 22

  validation {
    condition     = var.ssh_port > 0 && var.ssh_port < 65536
    error_message = "A port is a number from 1 to 65535."
  }
}

variable "ssh_groups" {
  type        = list(string)
  default     = ["sudo", "adm"]
  description = "The groups whose members may log in over SSH."
}

locals {
  banner = "Managed by golem. Changes to its files are put back; ask ${var.contact}.\n"
}
