file "/a" {
  source = "no-such-file"
}
