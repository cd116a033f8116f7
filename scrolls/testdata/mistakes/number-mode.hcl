file "/a" {
  content = "x"
  mode    = 0644
}
