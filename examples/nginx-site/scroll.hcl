# A web server with one site of golem's. Other sites of the host stay as they are, and a
# change of this one is read without a moment in which nginx does not answer.
name = "nginx-site"

variable "port" {
  type    = number
  default = 8080
}

variable "title" {
  type    = string
  default = "It works"
}

scroll "site" {
  # Purged when it goes, logs and all: without this, what its removal script would delete
  # stays, and the plan says so.
  apt "nginx-light" {
    purge = true
  }

  file "/srv/www/hello/index.html" {
    content = templatefile("templates/index.html.tftpl", { title = var.title, host = host.hostname })
    mode    = "0644"
  }

  file "/etc/nginx/conf.d/hello.conf" {
    content = templatefile("templates/site.conf.tftpl", { port = var.port, root = "/srv/www/hello" })
    mode    = "0644"
  }

  service "nginx.service" {
    state     = "running"
    enabled   = true
    reload_on = ["file:/etc/nginx/conf.d/*"]
  }
}
