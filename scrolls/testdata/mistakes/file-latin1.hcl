file "/a" {
  content = file("latin1.txt")
}
