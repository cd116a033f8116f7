policy {
}

policy {
}

file "/a" {
  content = "x"
}
