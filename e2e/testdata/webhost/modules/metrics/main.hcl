# What the collector asks, how often, and under what labels.

variable "every" {
  type = string

  validation {
    condition     = can(regex("^[0-9]+[sm]$", var.every))
    error_message = "\"${var.every}\" is no time like 30s or 5m."
  }
}

variable "targets" { type = list(string) }
variable "labels" { type = map(string) }

locals {
  listen = "127.0.0.1:9100"
}

file "/etc/metrics/collector.yaml" {
  content = yamlencode({
    interval = var.every
    listen   = local.listen
    labels   = var.labels
    targets  = var.targets
  })
}

line "enabled" {
  path  = "/etc/default/collector"
  match = "^#?ENABLED="
  line  = "ENABLED=1"
}

output "url" {
  value = "http://${local.listen}/metrics"
}
