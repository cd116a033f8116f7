name = "a b"
