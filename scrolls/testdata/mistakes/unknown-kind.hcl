fiel "/a" {
  content = "x"
}
