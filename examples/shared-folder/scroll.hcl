# Lets one user read what a service writes, and a group work in it, without a change of
# owner, mode or data.
name = "shared-folder"

variable "reader" {
  type    = string
  default = "backup"
}

scroll "data" {
  directory "/srv/data" {
    mode = "0750"
  }

  # All that is there now, and what is made there later.
  access "/srv/data" {
    user      = var.reader
    perms     = "rX"
    default   = true
    recursive = true
  }

  access "writers" {
    path    = "/srv/data"
    group   = "staff"
    perms   = "rwx"
    default = true
  }
}
