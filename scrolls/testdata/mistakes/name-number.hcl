name = 5
