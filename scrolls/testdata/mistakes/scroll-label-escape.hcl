scroll "a\u001b[31m" {
  file "/a" {
    content = "x"
  }
}
