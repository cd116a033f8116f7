scroll "a" {
  variable "x" {
  }
  locals {
  }
}
