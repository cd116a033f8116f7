scroll "db" {
  source = "./db"
}
scroll "many" {
  for_each = toset(["x"])
  source   = "./db"
  path     = "/many/${each.key}"
}
scroll "off" {
  when   = false
  source = "./db"
  path   = "/off"
}
scroll "uses" {
  file "/a" {
    content = "${scroll.db.uri} ${scroll.many.url} ${scroll.off.url}"
  }
}
