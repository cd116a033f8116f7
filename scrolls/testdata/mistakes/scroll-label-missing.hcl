scroll {
  file "/a" {
    content = "x"
  }
}
