policy {
  timeout = "1ns"
  retry {
    base_delay = "1m"
    max_delay  = "30s"
  }
}

scroll "a" {
  policy {
    retry { max_delay = "100ms" }
  }
  file "/a" {
    content = "x"
  }
}
