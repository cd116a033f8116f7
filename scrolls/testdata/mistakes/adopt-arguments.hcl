name = "web"

variable "secret" {
  default   = "file:/etc/hunter2"
  sensitive = true
}

file "/etc/motd" { content = "" }

adopt {}
adopt "label" { key = "file:/etc/motd" }
adopt {
  key = "file:/etc/motd"
  to  = "file.motd"
}
adopt {
  key = "file:/etc/motd"
  timeouts {}
}
adopt { key = ["file:/etc/motd"] }
adopt { key = null }
adopt { key = var.secret }
adopt {
  for_each = ["file:/etc/motd"]
  key      = each.value
}
adopt { key = file.motd }
