# with var:secret=hunter2
variable "secret" {
  sensitive = true
}
locals {
  what = scroll.nothing.endpoint
  typo = scroll.crcle.x
}
scroll "missing input" {
  source = "./db"
}
scroll "wrong inputs" {
  source = "./db"
  size   = "three"
  prot   = 1
}
scroll "deep type" {
  source = "./db"
  size   = 1
  users  = { ann = { uid = "many" } }
}
scroll "not valid" {
  source = "./db"
  size   = 0
}
scroll "secret not valid" {
  source = "./db"
  size   = var.secret
}
scroll "not there" {
  source = "./dbx"
}
scroll "no dots" {
  source = "db"
}
scroll "registry" {
  source = "git::https://example.org/db"
}
scroll "computed" {
  source = "./${var.secret}"
}
scroll "empty" {
  source = "./empty"
}
scroll "broken" {
  source = "./broken"
}
scroll "circle" {
  source = "./circle"
}
scroll "loop" {
  source = "./loop"
}
scroll "content" {
  source = "./glyphs"
  file "/x" {
    content = ""
  }
}
