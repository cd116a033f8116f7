job "a" {
  weight = pow(10, 400)
}
