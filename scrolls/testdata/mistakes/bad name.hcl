file "/a" {
  content = "x"
}
