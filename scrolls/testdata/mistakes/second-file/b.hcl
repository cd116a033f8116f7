file "/b" {
  mode = 5
}
