policy {
  on_exaust = "keep"
  retries {
  }
  retry {
    max_atempts = 3
  }
}

file "/a" {
  content = "x"
}
