job "a" {
  name = backup
}
