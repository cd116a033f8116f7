variable "path" {
  default = "/db"
}
file "db" {
  path    = var.path
  content = ""
}
output "url" {
  value = "db"
}
