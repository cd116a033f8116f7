locals "x" {
  a {
  }
}

file "/a" {
  content = "x"
}
