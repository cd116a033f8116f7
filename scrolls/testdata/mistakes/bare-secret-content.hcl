name = "web"

file "/etc/token" {
  content   = hunter2
  sensitive = true
}

file "/etc/motd" {
  content = greeting
}
