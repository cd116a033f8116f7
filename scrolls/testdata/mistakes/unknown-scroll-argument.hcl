scroll "a" {
  name = "b"
  file "/a" {
    content = "x"
  }
}
