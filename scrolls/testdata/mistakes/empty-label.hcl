file "" {
  content = "x"
}
