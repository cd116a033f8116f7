# A key that this host shows to others: made here, once, and never part of a scroll.
name = "deploy-key"

variable "comment" {
  type    = string
  default = "deploy@host"
}

scroll "key" {
  directory "/etc/deploy" {
    mode = "0700"
  }

  # Another comment is another key: the old one is removed first, by its own undo. A key that
  # somebody removed is made anew.
  command "deploy-key" {
    run     = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", var.comment, "-f", "/etc/deploy/key"]
    undo    = ["rm", "-f", "/etc/deploy/key", "/etc/deploy/key.pub"]
    creates = "/etc/deploy/key"
  }

  # Runs again whenever the key is made.
  command "fingerprint" {
    run          = ["sh", "-c", "ssh-keygen -l -f key.pub >fingerprint"]
    undo         = ["rm", "-f", "fingerprint"]
    dir          = "/etc/deploy"
    creates      = "/etc/deploy/fingerprint"
    triggered_by = ["command:deploy-key"]
  }
}
