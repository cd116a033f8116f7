scroll "a/b" {
  file "/a" {
    content = "x"
  }
}
