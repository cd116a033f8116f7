#!/usr/bin/env bash
# Shows golem on a throw-away file tree: plan, apply, a second plan, a change by hand,
# destroy; then compares the tree with what it was, path by path.
#
#   examples/try.sh bin/golem
set -euo pipefail

golem=$(realpath "${1:?usage: examples/try.sh GOLEM}")
here=$(realpath "$(dirname "$0")")
work=$(mktemp -d "${TMPDIR:-/tmp}/golem-try.XXXXXX")
trap 'rm -rf "$work"' EXIT
root=$work/root
export GOLEM_STATE=$work/planroom.db

heading() { printf '\n\033[1m== %s\033[0m\n\n' "$1" | if [ -t 1 ]; then cat; else sed 's/\x1b\[[0-9;]*m//g'; fi; }
run() {
  printf '$ golem %s\n\n' "$*"
  "$golem" "$@"
}

# A small tree as a Debian host has it, with what undo likes to get wrong: a missing final
# newline, odd modes, old times, links, a file with CRLF and one with a NUL byte.
make_tree() {
  mkdir -p "$root"/etc/{ssh/sshd_config.d,sysctl.d,logrotate.d,cron.d,profile.d} "$root"/var/log
  printf 'Welcome to the old host.\r\n' >"$root/etc/motd"
  printf 'Debian GNU/Linux 12\n' >"$root/etc/issue.net"
  printf '127.0.0.1 localhost\n::1 localhost ip6-localhost' >"$root/etc/hosts"
  printf 'web1\n' >"$root/etc/hostname"
  printf 'ID=debian\nVERSION_ID="12"\nVERSION_CODENAME=bookworm\n' >"$root/etc/os-release"
  printf 'root:x:%s:%s::/root:/bin/bash\n' "$(id -u)" "$(id -g)" >"$root/etc/passwd"
  printf 'root:x:%s:\n' "$(id -g)" >"$root/etc/group"
  printf '#kernel.sysrq=438\n' >"$root/etc/sysctl.conf"
  printf 'Include /etc/ssh/sshd_config.d/*.conf\nUsePAM yes\n' >"$root/etc/ssh/sshd_config"
  printf 'Port 2222\0\n' >"$root/etc/ssh/sshd_config.d/50-hardening.conf"
  printf '/var/log/dpkg.log {\n\tmonthly\n}\n' >"$root/etc/logrotate.d/dpkg"
  ln -s ../sysctl.conf "$root/etc/sysctl.d/99-sysctl.conf"
  ln -s nowhere "$root/etc/cron.d/check-updates"
  ln "$root/etc/hostname" "$root/etc/hostname.bak"
  chmod 0640 "$root/etc/motd"
  chmod 0600 "$root/etc/ssh/sshd_config.d/50-hardening.conf"
  find "$root" -type f -exec touch -d '2021-03-04 05:06:07.123456789' {} +
  setfattr -n user.note -v 'set by hand' "$root/etc/motd" 2>/dev/null || true
}

# One line a path: type, mode, owner, links, link text, time and hash of a file; then
# extended attributes and ACLs, where the tools for them are there.
fingerprint() {
  (
    cd "$root"
    find . -type f -printf '%p %y %m %U:%G %n %T@ ' -exec sha256sum {} \; -o -printf '%p %y %m %U:%G %l\n' | LC_ALL=C sort
    if command -v getfattr >/dev/null; then find . | LC_ALL=C sort | getfattr -h -d -m - -e hex - 2>/dev/null </dev/stdin || true; fi
    if command -v getfacl >/dev/null; then find . ! -type l | LC_ALL=C sort | getfacl -n - 2>/dev/null || true; fi
  )
}

make_tree
heading "1. The tree before: $(find "$root" | wc -l) paths in $root"
fingerprint >"$work/before"
(cd "$root" && find etc ! -type d | LC_ALL=C sort)

heading "2. golem plan: what would be done"
run plan "$here/hardened-server" --root "$root"

heading "3. golem apply (it prints the same plan again, left out here)"
run apply "$here/hardened-server" --root "$root" --auto-approve >"$work/out"
sed '3,/^Plan:/d' "$work/out"

heading "4. A second plan: nothing is left to do"
run plan "$here/hardened-server" --root "$root" --detailed-exitcode

heading "5. Somebody changes two files by hand; golem puts them back"
echo "MaxAuthTries 99" >>"$root/etc/ssh/sshd_config.d/50-hardening.conf"
rm "$root/etc/logrotate.d/auth"
run apply "$here/hardened-server" --root "$root" --auto-approve

heading "6. golem destroy: everything is given back"
run destroy "$here/hardened-server" --root "$root" --auto-approve

heading "7. The tree after, compared with the tree before"
fingerprint >"$work/after"
if ! diff -u "$work/before" "$work/after"; then
  echo
  echo "The tree is NOT as it was."
  exit 1
fi
echo "$(wc -l <"$work/before") lines of types, modes, owners, times, hashes, link texts and attributes: no difference."
echo "The tree is as it was."
