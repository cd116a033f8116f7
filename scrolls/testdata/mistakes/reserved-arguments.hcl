file "/a" {
  content      = "x"
  for_each     = []
  when         = true
  on_undeclare = "leave"
  protect      = true
  moved_from   = "x"
}
