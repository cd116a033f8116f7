name = "y"
