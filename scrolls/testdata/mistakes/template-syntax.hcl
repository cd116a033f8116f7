file "/a" {
  content = templatefile("endless.tftpl", { names = [] })
}
