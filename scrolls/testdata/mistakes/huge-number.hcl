job "a" {
  weight = 1e999999999
}
