job "a" {
  command = "ls -l"
  weight  = "heavy"
  quiet   = [1]
}
