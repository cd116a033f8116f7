job "a" {
  command = ["ls", ["-l"]]
  env = {
    A = "1"
    B = {}
  }
}
