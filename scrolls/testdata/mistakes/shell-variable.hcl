file "/a" {
  content = "export PATH=${HOME}/bin\n"
}
