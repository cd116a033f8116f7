file "/a" {
  content = "x"
