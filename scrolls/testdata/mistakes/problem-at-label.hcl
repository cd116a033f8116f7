file "etc/motd" {
  content = "x"
}
