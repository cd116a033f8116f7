locals {
  banner = "x"
  other  = local.baner
}

file "/a" {
  content = local.banner
}
