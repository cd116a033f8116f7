output "twice" {
  value = 1
}
output "twice" {
  value = 1
}
output "none" {
}
output "more" {
  valeu     = 1
  value     = 1
  sensitive = "perhaps"
}
output "a b" {
  value = 1
}
file "/a" {
  content = ""
}
