file "/a" {
  content = "x"
  line {
  }
}
