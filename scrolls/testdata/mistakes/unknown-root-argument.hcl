nmae = "web"

file "/a" {
  content = "x"
}
