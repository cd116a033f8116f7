file "/a" {
  source = "second-file"
}
