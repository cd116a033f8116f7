# A service in a container, on a network of its own, that comes up again with the host.
name = "container"

variable "image" {
  type    = string
  default = "docker.io/library/nginx:1.27-alpine"
}

variable "password" {
  type      = string
  sensitive = true
  default   = "change me"
}

scroll "engine" {
  apt "podman" {}

  # At boot podman itself starts nothing: this unit does, what has restart = "always".
  service "podman-restart.service" {
    enabled = true
  }
}

scroll "site" {
  file "/srv/site/index.html" {
    content = "<h1>${host.hostname}</h1>\n"
  }

  network "site" {
    subnet = "10.89.7.0/24"
  }

  container "site" {
    image    = var.image
    env      = { PASSWORD = var.password }
    networks = ["site"]
    ports    = ["127.0.0.1:8080:80/tcp"]
    restart  = "always"
    mounts = [
      { source = "/srv/site", target = "/usr/share/nginx/html", read_only = true },
      { volume = "site-data", target = "/var/lib/site" },
    ]
  }
}
