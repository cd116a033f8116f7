policy {
  on_exhaust = keep
}

file "/a" {
  content = "x"
}
