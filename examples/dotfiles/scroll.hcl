# A developer's dotfiles. Paths are absolute in a scroll, so the home is a variable:
#   golem apply examples/dotfiles --var home=$HOME --var email=me@example.com
name = "dotfiles"

variable "home" {
  type = string

  validation {
    condition     = startswith(var.home, "/")
    error_message = "Write the home directory from the root, like /home/ada."
  }
}

variable "email" {
  type    = string
  default = "ada@example.com"
}

variable "editor" {
  type    = string
  default = "vim"
}

scroll "git" {
  file "gitconfig" {
    path    = "${var.home}/.gitconfig"
    content = templatefile("files/gitconfig.tftpl", { email = var.email, editor = var.editor })
  }
  file "gitignore" {
    path   = "${var.home}/.config/git/ignore"
    source = "files/gitignore"
  }
}

scroll "shell" {
  file "aliases" {
    path   = "${var.home}/.config/shell/aliases"
    source = "files/aliases"
  }
  line "aliases" {
    path = "${var.home}/.bashrc"
    line = ". ~/.config/shell/aliases"
  }
  line "editor" {
    path = "${var.home}/.profile"
    line = "export EDITOR=${var.editor}"
  }
}

scroll "vim" {
  file "vimrc" {
    path   = "${var.home}/.config/vim/vimrc"
    source = "files/vimrc"
  }
  link "vimrc" {
    path   = "${var.home}/.vimrc"
    target = ".config/vim/vimrc"
  }
}

scroll "ssh" {
  directory "ssh" {
    path = "${var.home}/.ssh"
    mode = "0700"
  }
  file "ssh-config" {
    path    = "${var.home}/.ssh/config"
    content = "Host *\n  AddKeysToAgent yes\n  ServerAliveInterval 60\n  HashKnownHosts yes\n"
    mode    = "0600"
  }
}
