name = "web"

file "/etc/motd" {
  content = "hello
  mode    = "0644"
}

variable "password" {
  sensitive = true
  default   = "hunter2
}

file "/etc/issue" {
  content = "hello"
}
