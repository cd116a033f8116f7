file "/a" {
  content = "x
}
