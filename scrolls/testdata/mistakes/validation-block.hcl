variable "a" {
  description = 5
  default     = 1
  validation "label" {
    condition     = true
    error_message = "no"
    message       = "no"
  }
  validation {
    condition = true
  }
}
