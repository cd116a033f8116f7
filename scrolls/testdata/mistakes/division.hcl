file "/a" {
  content = 1 / 0
}
file "/b" {
  content = "${5 % (2 - 2)}"
}
file "/c" {
  content = templatestring("$${1 / 0}", {})
}
