locals {
  a = scroll.in.x
}
scroll "in" {
  source = "../glyphs"
  x      = local.b
}
locals {
  b = local.a
}
