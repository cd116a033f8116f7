scroll "up" { source = ".." }
