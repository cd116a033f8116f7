domain = "web1.example.org"

peers = {
  "db.internal"    = "10.0.0.5"
  "cache.internal" = "10.0.0.6"
}

admins = {
  ada   = { name = "Ada Byron", sudo = true }
  grace = { name = "Grace Hopper", from = ["10.0.0.0/8", "192.0.2.7"] }
}

sites = {
  shop = {
    port      = 8001
    domain    = "shop.example.org"
    aliases   = ["www.shop.example.org"]
    database  = "shop"
    upload_mb = 20
    env       = { CURRENCY = "EUR" }
    redirects = { "/old" = "/", "/sale" = "/offers?from=sale" }
    tls       = { hsts_days = 365 }
    jobs = [
      { name = "invoices", at = "*-*-* 02:30:00", command = ["/srv/www/shop/bin/invoices", "--since", "1 day"] },
      { name = "sitemap", at = "hourly", command = ["/srv/www/shop/bin/sitemap"] },
    ]
  }
  blog = {
    port   = 8002
    domain = "blog.example.org"
    tls    = { versions = ["TLSv1.3"] }
  }
  wiki = {
    port    = 8003
    domain  = "wiki.example.org"
    enabled = false
  }
}

metrics = { labels = { rack = "b7" } }
