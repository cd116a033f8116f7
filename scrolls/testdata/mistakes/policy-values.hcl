policy {
  on_exhaust  = "give-up"
  timeout     = "0s"
  max_removes = -1
  retry {
    max_attempts       = 0
    base_delay         = "200"
    backoff_multiplier = 0.5
    max_delay          = 30
    jitter_fraction    = 1.5
    max_elapsed        = "-1s"
  }
}

file "/a" {
  content = "x"
}
