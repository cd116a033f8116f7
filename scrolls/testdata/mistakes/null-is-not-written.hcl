line "x" {
  path = "/etc/hosts"
  line = null
}
