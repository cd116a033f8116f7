package reconcilers

import (
	"strings"
	"testing"
)

func TestACommandInAFewWords(t *testing.T) {
	for _, c := range []struct{ argv, want string }{
		{"/usr/bin/apt-get -y -q -o Dpkg::Options::=--force-confold -o DPkg::Lock::Timeout=60 install nginx", "apt-get install nginx"},
		{"apt-get install a b c d", "apt-get install a b c d"},
		{"apt-get install a b c d e", "apt-get install a b c and 2 more"},
		{"systemctl --no-ask-password start -- nginx.service", "systemctl start nginx.service"},
		{"dpkg --configure nginx", "dpkg --configure nginx"},
		{"dpkg-query -W -f ${Package}", "dpkg-query"},
		{"/usr/bin/nginx -t -q", "nginx -t -q"},
		{"true", "true"},
		{"curl " + strings.Repeat("x", 100), "curl " + strings.Repeat("x", 54) + "…"},
	} {
		if got := (Command{Argv: strings.Split(c.argv, " ")}).Brief(); got != c.want {
			t.Errorf("%s: %q, want %q", c.argv, got, c.want)
		}
	}
	if got := (Command{Argv: []string{"/bin/login", "hush"}, Secret: true}).Brief(); got != "login (secret)" {
		t.Errorf("a secret command: %q", got)
	}
}
