file "/a" {
  content      = "x"
  on_undeclare = "keep"
  protect      = "yes"
  moved_from   = "file:/b"
}
file "/b" {
  content    = "x"
  when       = "perhaps"
  protect    = sensitive(true)
}
check "tcp" {
  address = "127.0.0.1:1"
  protect = true
}
