kubernetes "/a" {
}
