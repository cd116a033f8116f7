file "/a" {
  content = "x"
}

scroll "b" {
  file "/b" {
    content = "x"
  }
}
