variable "size" {
  type = number
  validation {
    condition     = var.size > 0
    error_message = "A size is above zero; ${var.size} is not."
  }
}
variable "port" {
  default = 1
}
variable "users" {
  type    = map(object({ uid = number }))
  default = {}
}
file "/db" {
  content = var.size
}
