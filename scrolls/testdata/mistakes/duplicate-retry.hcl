policy {
  retry { max_attempts = 2 }
  retry "x" { max_attempts = 3 }
}
job "a" {}
