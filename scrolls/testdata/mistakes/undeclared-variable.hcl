variable "sites" {
  default = []
}

job "a" {
  command = var.sits
}
