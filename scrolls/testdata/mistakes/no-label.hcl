file {
  content = "x"
}
