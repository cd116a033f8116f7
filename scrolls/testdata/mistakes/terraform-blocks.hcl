resource "file" "x" {
  path = "/x"
}
module "db" {
  source = "./db"
}
terraform {
}
import {
  to = file.x
}
scroll "a" {
  count = 2
  file "/a" {
    content    = ""
    count      = 1
    depends_on = [file.x]
    prevent_destroy = true
    lifecycle {
      prevent_destroy = true
    }
    dynamic "validate" {
      for_each = []
    }
  }
}
