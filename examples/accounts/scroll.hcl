# Who may log in to a host, and a user that a service runs as, with its files.
name = "accounts"

variable "people" {
  description = "Login names, with their full names and the keys that open them."
  type        = map(object({ name = string, keys = list(string) }))
  default = {
    ada = {
      name = "Ada Example"
      keys = ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJx0vXq0n5q8bQnX3eYt5g6rVh8b0Yd2n9u3kQw1cM7p ada@desk"]
    }
    bob = {
      name = "Bob Example"
      keys = ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHk2p9zqf0b1m3n5o7q9s1u3w5y7a9c1e3g5i7k9m1o3 bob@desk"]
    }
  }
}

scroll "people" {
  group "operators" {}
  user "ada" {
    comment         = var.people.ada.name
    shell           = "/bin/bash"
    groups          = ["operators", "sudo"]
    authorized_keys = var.people.ada.keys
  }
  user "bob" {
    comment         = var.people.bob.name
    shell           = "/bin/bash"
    groups          = ["operators"]
    expires         = "2031-12-31"
    authorized_keys = var.people.bob.keys
  }
}

# What is written first is made first: the user is there when its files need an owner.
scroll "backup" {
  user "backup-job" {
    system = true
    home   = "/var/lib/backup-job"
  }
  directory "/var/lib/backup-job" {
    owner = "backup-job"
    group = "operators"
    mode  = "0750"
  }
  process "backup-job" {
    user     = "backup-job"
    schedule = "daily"
    command  = ["/bin/tar", "-czf", "/var/lib/backup-job/etc.tar.gz", "--ignore-failed-read", "/etc"]
  }
}
