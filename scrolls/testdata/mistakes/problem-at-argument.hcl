locals {
  mode = "644"
}

file "/a" {
  content = "x"
  mode    = local.mode
}
