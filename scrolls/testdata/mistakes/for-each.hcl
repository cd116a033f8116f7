# with var:secret=hunter2
variable "secret" {
  sensitive = true
}
file "list" {
  for_each = ["a"]
  path     = "/${each.value}"
  content  = ""
}
file "null" {
  for_each = null
  path     = "/${each.key}"
  content  = ""
}
file "text" {
  for_each = "text"
  path     = "/${each.key}"
  content  = ""
}
file "numbers" {
  for_each = toset([1, 2])
  path     = "/${each.key}"
  content  = ""
}
file "secret" {
  for_each = toset([var.secret])
  path     = "/${each.key}"
  content  = ""
}
file "secret map" {
  for_each = sensitive({ a = 1 })
  path     = "/${each.key}"
  content  = ""
}
file "secret value in the path" {
  for_each = { a = sensitive("hunter2") }
  path     = "/${each.value}"
  content  = ""
}
file "/label" {
  for_each = toset(["a", "b"])
  content  = each.key
}
file "typo" {
  for_each = toset(["a", "b"])
  path     = "/typo${each.kye}"
  content  = ""
}
file "/none" {
  content = each.key
}
file "odd key" {
  for_each = { "a\nb" = 1 }
  path     = "/odd"
  content  = ""
}
