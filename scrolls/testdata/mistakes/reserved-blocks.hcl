data "x" {
}

moved {
}

output "x" {
}

hook "x" {
}

report "x" {
}
