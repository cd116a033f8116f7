scroll "again" { source = "./again" }
