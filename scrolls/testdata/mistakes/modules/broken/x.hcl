file "/x" {
