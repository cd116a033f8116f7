scroll "a" {
  file "/etc/a" {
    content = ""
  }
  check "htpp" {
    url = "http://127.0.0.1/"
  }
  check "http" {
  }
  check {
  }
}
scroll "b" {
  check "http" {
    url = "http://127.0.0.1/"
  }
}
