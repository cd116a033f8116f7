file "/a" {
  content = uper("x")
}
