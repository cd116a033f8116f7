locals {
  a = 1
}

locals {
  a = 2
}

file "/a" {
  content = "x"
}
