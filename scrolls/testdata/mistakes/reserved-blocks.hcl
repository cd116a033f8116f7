data "x" {
}

moved {
}


hook "x" {
}

report "x" {
}
