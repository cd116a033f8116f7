# with var:pw=hunter2
variable "pw" {
  sensitive = true
  validation {
    condition     = length(var.pw) > 10
    error_message = "${var.pw} is too short."
  }
}

file "/a" {
  content = "x"
}
