locals {
  a = count.index
  b = module.db.url
  c = data.file.x
  d = terraform.workspace
  e = path.cwd
  f = file.motd.content
  g = host.os.codname
  h = loca.x
  i = { one = { two = 2 } }
}
file "/a" {
  content = "${local.i.one.three} ${local.i["uno"]}"
}
