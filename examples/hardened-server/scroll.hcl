# The files of a server that is open to the net: who may log in and how, what the
# kernel refuses, what is logged for how long.
name = "hardened-server"

scroll "login" {
  file "/etc/motd" {
    content = templatefile("templates/motd.tftpl", {
      hostname = host.hostname
      contact  = var.contact
    })
    mode = "0644"
  }
  file "/etc/issue.net" {
    content = "Authorized use only. What you do here is recorded.\n"
    mode    = "0644"
  }
  file "/etc/profile.d/50-timeout.sh" {
    content = "# ${local.banner}readonly TMOUT=900\nexport TMOUT\n"
    mode    = "0644"
  }
}

scroll "kernel" {
  file "/etc/sysctl.d/60-hardening.conf" {
    source = "files/hardening.conf"
    mode   = "0644"
  }
  file "/etc/modprobe.d/blacklist-rare.conf" {
    content = join("", [for m in ["dccp", "sctp", "rds", "tipc"] : "install ${m} /bin/false\n"])
    mode    = "0644"
  }
}

scroll "ssh" {
  directory "/etc/ssh/sshd_config.d" {
    mode = "0755"
  }
  file "/etc/ssh/sshd_config.d/50-hardening.conf" {
    content = templatefile("templates/sshd.conf.tftpl", {
      banner = local.banner
      port   = var.ssh_port
      groups = var.ssh_groups
    })
    mode = "0600"
  }
}

scroll "logs" {
  file "/etc/logrotate.d/auth" {
    source = "files/logrotate-auth"
    mode   = "0644"
  }
}

scroll "jobs" {
  file "/etc/cron.d/check-updates" {
    content = <<-EOT
      # ${trimspace(local.banner)}
      MAILTO=${var.contact}
      17 4 * * * root test -x /usr/bin/apt-get && apt-get -qq --simulate upgrade
    EOT
    mode    = "0644"
  }
}

scroll "names" {
  line "log-host" {
    path = "/etc/hosts"
    line = "10.0.0.9 logs.internal"
  }
  line "backup-host" {
    path = "/etc/hosts"
    line = "10.0.0.10 backup.internal"
  }
}
