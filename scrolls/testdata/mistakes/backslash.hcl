line "a" {
  match = "^\d+"
}
