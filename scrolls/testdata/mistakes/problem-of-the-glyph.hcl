file "/a" {
}
