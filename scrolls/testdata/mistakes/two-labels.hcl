file "/a" "/b" {
  content = "x"
}
