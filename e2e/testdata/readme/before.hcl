# What README.md's plan starts from: the same host, one revision earlier.
name = "web-host"

scroll "base" {
  file "/etc/motd" {
    content = "managed by golem\n"
  }
}

scroll "web" {
  file "/etc/sysctl.d/60-web.conf" {
    content = "net.core.somaxconn = 4096\n"
  }
}

scroll "mail" {
  file "/etc/aliases" {
    content = "root: ops@example.com\n"
  }
}
