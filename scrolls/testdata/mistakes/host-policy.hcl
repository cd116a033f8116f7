# with policy:golem.policy
file "/a" {
  content = "x"
}
