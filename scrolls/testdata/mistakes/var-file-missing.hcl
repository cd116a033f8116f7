# with var-file:no-such.vars
file "/a" {
  content = "x"
}
