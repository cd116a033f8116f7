scroll "a" {
  file "/a" {
    content = "x"
  }
}

scroll "a" {
  file "/b" {
    content = "x"
  }
}
