file "/a" {
  content = "x"
}

file "again" {
  path    = "/a"
  content = "y"
}
