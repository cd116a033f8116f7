variable "pw" {
  sensitive = true
  default   = "hunter2"
}
job "a" {
  more = { for k in [var.pw, var.pw] : k => 1 }
}
