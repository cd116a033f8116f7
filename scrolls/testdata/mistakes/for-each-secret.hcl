# with var:tokens={"a"="hunter2"}
variable "tokens" {
  type      = map(string)
  sensitive = true
}
variable "on" {
  default   = true
  sensitive = true
}
file "a" {
  for_each = { for name, token in var.tokens : name => token }
  path     = "/${each.key}"
  content  = each.value
}
file "/b" {
  when    = var.on
  content = ""
}
