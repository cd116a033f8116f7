# Tightens sshd and has it read that, without ever stopping it: whoever is logged in stays
# logged in, now and when this is taken back.
name = "sshd"

variable "allow_passwords" {
  type    = bool
  default = false
}

scroll "ssh" {
  file "/etc/ssh/sshd_config.d/40-golem.conf" {
    content = <<-EOT
      PermitRootLogin prohibit-password
      PasswordAuthentication ${var.allow_passwords ? "yes" : "no"}
      KbdInteractiveAuthentication no
      MaxAuthTries 3
      LoginGraceTime 30
    EOT
    mode    = "0600"
  }

  # Without a state, the service is the host's: golem neither starts nor stops it, it only
  # reloads it when it runs.
  service "ssh.service" {
    reload_on = ["file:/etc/ssh/sshd_config.d/*"]
  }
}
