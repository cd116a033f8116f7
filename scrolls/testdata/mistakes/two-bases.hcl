scroll "one" {
  file "/a" {
    content = "x"
  }
}

scroll "two" {
  directory "/a" {
  }
}
