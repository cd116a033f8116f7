variable "a" {
  default = host.hostname
}

file "/a" {
  content = "x"
}
