# with var:sites={"a.b"={ports=[80,"http"]}} var:pair=["x"] var:any=hello var:words=a,b
variable "sites" {
  type = map(object({ ports = list(number), tls = optional(bool, true) }))
}
variable "pair" {
  type = tuple([string, number])
}
variable "any" {
  type = any
}
variable "words" {
  type = list(string)
}
file "/a" {
  content = ""
}
