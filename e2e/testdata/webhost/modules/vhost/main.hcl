# A site's server block, with the headers that every site sends.

variable "name" { type = string }
variable "names" { type = list(string) }
variable "upstream" { type = string }

variable "body_mb" {
  type     = number
  default  = 1
  nullable = false
}

variable "tls" {
  type = object({
    versions  = optional(list(string), ["TLSv1.3"])
    hsts_days = optional(number, 0)
  })

  validation {
    condition     = length(setsubtract(var.tls.versions, ["TLSv1.2", "TLSv1.3"])) == 0
    error_message = "${var.name} asks for a version of TLS that nobody should speak: ${join(", ", var.tls.versions)}."
  }
}

locals {
  file = "/etc/nginx/sites-available/${var.name}.conf"
}

scroll "server" {
  file "server" {
    path = local.file
    content = templatefile("server.conf.tftpl", {
      name    = var.name
      names   = var.names
      body    = var.body_mb
      tls     = var.tls
      include = scroll.headers.include
    })
  }

  link "enabled" {
    path   = "/etc/nginx/sites-enabled/${var.name}.conf"
    target = "../sites-available/${basename(local.file)}"
  }
}

scroll "headers" {
  source = "../headers"

  site = var.name
  headers = merge(
    { X-Content-Type-Options = "nosniff", Referrer-Policy = "same-origin" },
    var.tls.hsts_days > 0 ? { Strict-Transport-Security = "max-age=${var.tls.hsts_days * 86400}" } : {},
  )
}

output "path" {
  value = local.file
}
