job "a" {
  name    = var.x
  command = [for i in range(3) : file("none")]
}
