file "/a" {
  content = file("no-such-file")
}
