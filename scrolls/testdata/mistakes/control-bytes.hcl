file "/a" {
  content = "x"
  moed = "x[31m"
}
