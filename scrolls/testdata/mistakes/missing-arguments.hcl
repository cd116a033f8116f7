line "x" {
}
