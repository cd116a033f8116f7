name = "own"
file "/g" { content = "" }
