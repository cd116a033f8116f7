# with var:secret=hunter2
variable "secret" {
  sensitive = true
}
scroll "sensitive" {
  when = var.secret == "x"
}
scroll "null" {
  when = null
}
scroll "number" {
  when = 3
}
scroll "list" {
  for_each = ["a"]
}
