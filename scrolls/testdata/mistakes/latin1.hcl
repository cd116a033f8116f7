locals {
  a = 1
}

file "/a" {
  content = "café"
}
