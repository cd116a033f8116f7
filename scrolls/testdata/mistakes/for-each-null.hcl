file "a" {
  for_each = toset(["a", null])
  path     = "/${each.key}"
  content  = ""
}
