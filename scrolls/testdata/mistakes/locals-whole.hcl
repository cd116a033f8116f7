locals {
  a = keys(local)
  b = 1
}

file "/a" {
  content = "x"
}
