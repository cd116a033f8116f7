# What turns an unpacked Debian tree into the image of an appliance:
#   golem apply examples/image --root /build/rootfs --auto-approve
# Owners are looked up in the image's own passwd and group, not in the builder's.
name = "appliance-image"

variable "hostname" {
  type    = string
  default = "appliance"
}

variable "timezone" {
  type    = string
  default = "Europe/Berlin"
}

variable "user" {
  type        = string
  default     = "www-data"
  description = "The user, of the image, that the service runs as."
}

scroll "identity" {
  file "/etc/hostname" {
    content = "${var.hostname}\n"
    mode    = "0644"
  }
  line "self" {
    path = "/etc/hosts"
    line = "127.0.1.1 ${var.hostname}"
  }
  # Empty: every copy of the image makes its own at its first boot (machine-id(5)).
  file "/etc/machine-id" {
    content = ""
    mode    = "0444"
  }
  link "/etc/localtime" {
    target = "/usr/share/zoneinfo/${var.timezone}"
  }
}

scroll "disks" {
  line "root" {
    path = "/etc/fstab"
    line = "LABEL=root / ext4 defaults,errors=remount-ro 0 1"
  }
  line "data" {
    path = "/etc/fstab"
    line = "LABEL=data /srv/data ext4 defaults,nofail 0 2"
  }
}

scroll "boot" {
  link "/etc/systemd/system/default.target" {
    target = "/lib/systemd/system/multi-user.target"
  }
  file "/etc/systemd/network/20-wired.network" {
    source = "files/20-wired.network"
    mode   = "0644"
  }
  link "/etc/systemd/system/multi-user.target.wants/systemd-networkd.service" {
    target = "/lib/systemd/system/systemd-networkd.service"
  }
}

scroll "data" {
  directory "/srv/data" {
    mode  = "2770"
    owner = var.user
    group = var.user
  }
  file "/srv/data/.keep" {
    content = ""
    mode    = "0640"
    owner   = var.user
    group   = var.user
  }
}
