line "x" {
  path = "/etc/hosts"
}
