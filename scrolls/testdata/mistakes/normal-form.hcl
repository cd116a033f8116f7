file "/café" {
  content = "x"
}
