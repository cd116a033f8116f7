# The public web host: one nginx in front, and behind it a program for each site.
name = "web-host"

variable "domain" {
  type        = string
  description = "What the host is called from outside."

  validation {
    condition     = can(regex("^[a-z0-9-]+(\\.[a-z0-9-]+)+$", var.domain))
    error_message = "The domain \"${var.domain}\" is no name like web.example.org."
  }
}

variable "ports" {
  type        = object({ first = number, last = number })
  description = "Where the sites' programs may listen."
  default     = { first = 8000, last = 8099 }

  validation {
    condition     = var.ports.first < var.ports.last && var.ports.first >= 1024
    error_message = "The ports have to begin at 1024 or later, and end later than they begin."
  }
}

variable "sites" {
  description = "The sites, by a short name that their directories and units have."
  type = map(object({
    port      = number
    domain    = string
    aliases   = optional(list(string), [])
    enabled   = optional(bool, true)
    upload_mb = optional(number, 1)
    database  = optional(string)
    env       = optional(map(string), {})
    redirects = optional(map(string), {})
    tls = optional(object({
      versions  = optional(list(string), ["TLSv1.2", "TLSv1.3"])
      hsts_days = optional(number, 180)
    }), {})
    jobs = optional(list(object({
      name    = string
      at      = string
      command = list(string)
    })), [])
  }))

  validation {
    condition     = alltrue([for s in values(var.sites) : s.port >= var.ports.first && s.port <= var.ports.last])
    error_message = "A site listens outside of ${var.ports.first} to ${var.ports.last}."
  }
  validation {
    condition     = length(distinct([for s in values(var.sites) : s.port])) == length(var.sites)
    error_message = "Two sites listen on one port."
  }
}

variable "admins" {
  description = "Who may log in, and how."
  type = map(object({
    name = string
    from = optional(list(string), ["any"])
    sudo = optional(bool, false)
  }))
  default = {}
}

variable "peers" {
  type        = map(string)
  description = "Hosts beside this one that need no DNS: name to address."
  default     = {}
}

variable "workers" {
  type     = number
  default  = 2
  nullable = false
}

variable "database_password" {
  type        = string
  description = "Of the sites' one role in the database."
  sensitive   = true
}

variable "metrics" {
  type    = object({ enabled = optional(bool, true), every = optional(string, "30s"), labels = optional(map(string), {}) })
  default = {}
}

locals {
  banner   = "${var.domain}: ${local.count == 1 ? "1 site" : "${local.count} sites"}, managed by golem on ${host.hostname}"
  count    = length(local.live)
  live     = { for name, site in var.sites : name => site if site.enabled }
  database = { host = "db.internal", port = 5432, user = "web" }
}

locals {
  # Every name that answers here, and the site that it leads to.
  names = merge([
    for short, site in local.live : { for name in concat([site.domain], site.aliases) : name => short }
  ]...)
  sudoers = sort([for login, admin in var.admins : login if admin.sudo])
  sshd = {
    PermitRootLogin        = "no"
    PasswordAuthentication = "no"
    X11Forwarding          = "no"
    MaxAuthTries           = 3
    AllowUsers = join(" ", flatten([
      for login, admin in var.admins : [for from in admin.from : from == "any" ? login : "${login}@${from}"]
    ]))
  }
}

scroll "base" {
  policy {
    timeout = "2m"
    retry {
      max_attempts = 2
    }
  }

  scroll "login" {
    file "/etc/motd" {
      content = join("", concat(["${local.banner}\n\n"], [
        for name in sort(keys(local.names)) : format("  %-24s %s\n", name, local.names[name])
      ]))
      mode = "0644"
    }

    file "/etc/issue.net" {
      content = "Authorized use only.\n"
      protect = true
    }

    entry "sshd" {
      for_each = { for key, value in local.sshd : key => value if value != "" }
      path     = "/etc/ssh/sshd_config"
      key      = [each.key]
      value    = tostring(each.value)
    }

    file "sudo" {
      for_each = toset(local.sudoers)
      path     = "/etc/sudoers.d/${each.key}"
      content  = <<-END
        # ${var.admins[each.key].name}
        ${each.key} ALL=(ALL:ALL) NOPASSWD: ALL
      END
      mode     = "0440"
    }
  }

  scroll "names" {
    line "peer" {
      for_each = var.peers
      path     = "/etc/hosts"
      line     = "${each.value} ${each.key}"
    }

    region "sites" {
      path    = "/etc/hosts"
      content = join("\n", [for name in sort(keys(local.names)) : "127.0.0.1 ${name}"])
    }
  }

  scroll "kernel" {
    file "/etc/sysctl.d/60-web.conf" {
      content = join("", [for key, value in {
        "net.core.somaxconn"           = 4096
        "net.ipv4.tcp_max_syn_backlog" = 8192
        "vm.swappiness"                = host.container == "" ? 10 : 60
      } : "${key} = ${value}\n"])
    }

    line "nofile" {
      path = "/etc/security/limits.conf"
      line = "www-data hard nofile 65536"
    }
  }
}

scroll "nginx" {
  policy {
    on_exhaust = "rollback"
  }

  directory "/srv/www" {
    mode = "0755"
  }

  directory "/var/cache/nginx" {
    mode         = "0700"
    on_undeclare = "leave"
  }

  file "/etc/nginx/nginx.conf" {
    content = templatefile("templates/nginx.conf.tftpl", {
      workers   = var.workers
      uploads   = max(1, [for site in values(local.live) : site.upload_mb]...)
      upstreams = { for name, site in scroll.sites : name => site.upstream }
    })
    validate = ["grep", "-q", "worker_processes", "%s"]
  }

  file "/etc/nginx/conf.d/redirects.conf" {
    content = templatefile("templates/redirects.conf.tftpl", { sites = local.live })
    when    = anytrue([for site in values(local.live) : length(site.redirects) > 0])
  }

  link "/etc/nginx/sites-enabled/default" {
    target = "../sites-available/${keys(local.live)[0]}.conf"
  }

  check "command" {
    run = ["test", "-x", "/bin/sh"]
  }
}

scroll "sites" {
  for_each = local.live
  source   = "./modules/site"

  name   = each.key
  site   = each.value
  secret = var.database_password
  db = each.value.database == null ? null : merge(local.database, {
    name = each.value.database
  })

  policy {
    on_exhaust = "keep"
  }
}

scroll "operations" {
  scroll "metrics" {
    source = "./modules/metrics"
    when   = var.metrics.enabled

    every   = var.metrics.every
    labels  = merge({ host = host.hostname, domain = var.domain }, var.metrics.labels)
    targets = [for site in values(scroll.sites) : site.health]
  }

  scroll "backup" {
    file "/etc/backup/paths" {
      content = join("\n", concat(["/etc"], flatten([for site in values(scroll.sites) : site.paths]), [""]))
    }

    file "/etc/backup/databases.json" {
      content = jsonencode({ for name, site in scroll.sites : name => site.database if site.database != null })
    }

    file "agent" {
      path    = "/etc/backup/agent.env"
      content = "METRICS=${try(scroll.operations.metrics.url, "")}\nPASSWORD=${var.database_password}\n"
      mode    = "0600"
    }
  }
}
