variable "size" {
  defualt = 5
  valid {
  }
}

file "/a" {
  content = "x"
}
