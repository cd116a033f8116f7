scroll "one" {
  file "/a" {
    content = "x"
  }
}

scroll "two" {
  file "/a" {
    content = "x"
  }
}
