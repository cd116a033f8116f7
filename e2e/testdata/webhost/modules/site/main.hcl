# One site: its program's settings, its place in nginx, its jobs.

variable "name" {
  type = string

  validation {
    condition     = can(regex("^[a-z][a-z0-9]*$", var.name))
    error_message = "The site's name \"${var.name}\" has other than small letters and digits."
  }
}

variable "site" {
  type = object({
    port      = number
    domain    = string
    aliases   = list(string)
    upload_mb = number
    env       = map(string)
    tls       = object({ versions = list(string), hsts_days = number })
    jobs      = list(object({ name = string, at = string, command = list(string) }))
  })
}

variable "db" {
  type    = object({ host = string, port = number, user = string, name = string })
  default = null
}

variable "secret" {
  type      = string
  sensitive = true
}

locals {
  root    = "/srv/www/${var.name}"
  listens = "127.0.0.1:${var.site.port}"
  url     = var.db == null ? null : "postgres://${var.db.user}:${urlencode(var.secret)}@${var.db.host}:${var.db.port}/${var.db.name}"
  env = merge({ LISTEN = local.listens, PUBLIC_URL = "https://${var.site.domain}/" }, var.site.env, {
    for key, value in { DATABASE_URL = local.url } : key => value if value != null
  })
}

scroll "program" {
  directory "root" {
    path = local.root
    mode = "0750"
  }

  file "settings" {
    path    = "/etc/sites/${var.name}.env"
    content = join("", [for key in sort(keys(local.env)) : "${key}=${local.env[key]}\n"])
    mode    = "0600"
  }

  file "robots" {
    path   = "${local.root}/robots.txt"
    source = "robots.txt"
  }

  entry "limits" {
    path   = "/etc/sites/limits.json"
    format = "json"
    key    = [var.name]
    value  = { memory = "${max(256, var.site.upload_mb * 16)}M", tasks = 64 }
  }
}

scroll "vhost" {
  source = "../vhost"

  name     = var.name
  names    = concat([var.site.domain], var.site.aliases)
  upstream = local.listens
  body_mb  = var.site.upload_mb
  tls      = var.site.tls
}

scroll "jobs" {
  for_each = { for job in var.site.jobs : job.name => job }

  file "job" {
    path = "/etc/sites/jobs/${var.name}-${each.key}.job"
    content = join("\n", [
      "at=${each.value.at}",
      "run=${jsonencode(each.value.command)}",
      "dir=${local.root}",
      "",
    ])
  }
}

output "upstream" {
  value = { server = local.listens, keepalive = var.site.upload_mb > 10 ? 32 : 8 }
}

output "health" {
  value = "http://${local.listens}/health"
}

output "paths" {
  value = [local.root, scroll.vhost.path]
}

output "database" {
  value = try(var.db.name, null)
}
