locals {
  a = local.b
  b = local.c
  c = local.a
}

file "/a" {
  content = local.a
}
