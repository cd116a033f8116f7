file "same" {
  for_each = { a = 1, b = 2 }
  path     = "/same"
  content  = each.key
}
