scroll "a" {
  source   = "./m"
  for_each = []
}
