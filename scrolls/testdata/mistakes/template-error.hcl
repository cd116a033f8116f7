file "/a" {
  content = templatefile("bad.tftpl", {})
}
