name = "web"

file "/etc/motd" { content = "" }
file "off" {
  when    = false
  path    = "/etc/off"
  content = ""
}
job "init" {}

adopt { key = "file:/etc/mots" }
adopt { key = "fil:/etc/motd" }
adopt { key = "/etc/motd" }
adopt { key = "file:/etc/off" }
adopt { key = "job:init" }
adopt { key = "file:/etc/motd" }
adopt { key = "file:/etc/motd" }
