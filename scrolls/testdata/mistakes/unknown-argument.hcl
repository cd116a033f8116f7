file "/a" {
  contents = "x"
}
