name = "web"

locals {
  token = sensitive(hunter2)
}

file "/etc/motd" {
  content = "x"
}
