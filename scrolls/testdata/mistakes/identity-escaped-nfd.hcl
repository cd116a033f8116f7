file "id" {
  path    = "/caf\u0065\u0301"
  content = ""
}
