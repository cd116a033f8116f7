# A release that comes as an archive, with one file of it kept out and written here. Another
# version is another archive: what is new in it is written, what it lacks goes, and what is
# the same is not touched.
name = "handbook"

variable "version" {
  type    = string
  default = "1.0"
}

scroll "site" {
  archive "/srv/www/handbook" {
    source  = "files/handbook-${var.version}.tar.gz"
    strip   = 1
    exclude = ["conf/handbook.conf"]
  }

  file "/srv/www/handbook/conf/handbook.conf" {
    content = "title = Handbook of ${host.hostname}\nsearch = on\n"
    mode    = "0644"
  }
}
