locals {
  i = { one = { two = 2 }, none = {} }
}
file "/a" {
  content = "${local.i.one.three} ${local.i["uno"]} ${local.i.none.x}"
}
file "/b" {
  content = [for name in ["y"] : local.i[name]]
}
