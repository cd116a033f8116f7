# with name:a/b
file "/a" {
  content = "x"
}
