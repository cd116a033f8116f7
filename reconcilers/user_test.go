package reconcilers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"

	"pgregory.net/rapid"

	"golem/reconcilers/fake"
	"golem/scrolls"
)

// accountsHost lets fake tools for accounts answer for a host.
func accountsHost(h *Host, a *fake.Accounts) {
	h.Booted = true
	h.Exec = func(_ context.Context, c Command) (Output, error) {
		did, ok, err := a.Run(c.Argv...)
		out := Output{Stdout: []byte(did.Out), Stderr: []byte(did.Err)}
		switch {
		case err != nil:
			return out, err
		case !ok:
			return out, fmt.Errorf("run %s: no such program", c.Argv[0])
		case did.Code != 0:
			return out, &CommandError{Argv: c.Argv, Code: did.Code, Said: did.Err, Err: fmt.Errorf("exit status %d", did.Code)}
		}
		return out, nil
	}
}

// drawAccounts draws what was there before: ada in some state, or not, and others.
func (b *bench) drawAccounts() {
	a := &fake.Accounts{Root: b.root}
	err := a.Boot()
	euid := strconv.Itoa(os.Geteuid())
	passwd := "root:x:0:0:root:/root:/bin/bash\n"
	shadow := "root:*:20000:0:99999:7:::\n"
	group, gshadow := "root:x:0:\nsudo:x:27:zoe\n", "root:*::\nsudo:*::zoe\n"
	if rapid.Bool().Draw(b.t, "ada") {
		passwd += "ada:x:" + euid + "00:" + euid + "01:Ada:/home/ada:/bin/sh\n"
		shadow += rapid.SampledFrom([]string{"ada:!$6$x$y:19000:0:99999:7::20000:\n", "ada:$6$x$y:19000:0:99999:7:::\n", "ada:*:19000::::::\n"}).Draw(b.t, "shadow")
		group += "ada:x:" + euid + "01:\n"
		group, gshadow = group+"docker:x:999:bob,ada,zoe\n", gshadow+"docker:!::bob,ada,zoe\n"
		err = errors.Join(err, os.MkdirAll(b.root+"/home/ada", 0o755))
		if text := rapid.SampledFrom([]string{"none", "no file", "", "ssh-rsa AAAAB3NzaC1yc2EAAAA hand\n", benchKey + "\n", "# no end"}).Draw(b.t, "keys"); text != "none" {
			err = errors.Join(err, os.Mkdir(b.root+"/home/ada/.ssh", 0o700))
			if text != "no file" {
				err = errors.Join(err, os.WriteFile(b.root+"/home/ada/.ssh/authorized_keys", []byte(text), 0o640))
			}
		}
	} else {
		group, gshadow = group+"docker:x:999:bob,zoe\n", gshadow+"docker:!::bob,zoe\n"
	}
	passwd, group = passwd+"zoe:x:1777:27::/home/zoe:/bin/sh\n", group+"adm:x:4:\n"
	for file, text := range map[string]string{"passwd": passwd, "shadow": shadow, "group": group, "gshadow": gshadow + "adm:*::\n"} {
		err = errors.Join(err, os.WriteFile(b.root+"/etc/"+file, []byte(text), 0o640))
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) bootAccounts(h *Host) { accountsHost(h, &fake.Accounts{Root: b.root}) }

// printAccounts is the file tree without the times of what the tools rewrite.
func (b *bench) printAccounts() string { return accountTimes.ReplaceAllString(b.printFiles(), "$1$2") }

var accountTimes = regexp.MustCompile(`(?m)^(/etc/(?:passwd|shadow|group|gshadow|subuid|subgid) .* )[0-9]+( map)`)

const benchKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIExample ada@desk"

func sampleUser(t *rapid.T) scrolls.Attrs {
	a := scrolls.Attrs{"name": "ada"}
	maybe := func(attr string, values ...any) {
		if i := rapid.IntRange(-len(values), len(values)-1).Draw(t, attr); i >= 0 {
			a[attr] = values[i]
		}
	}
	maybe("comment", "", "Ada L.")
	maybe("shell", "/bin/sh", "/bin/bash")
	maybe("group", "adm", "docker", "27")
	maybe("groups", []any{}, []any{"docker"}, []any{"adm", "sudo"})
	if a["groups"] != nil {
		maybe("exclusive", true)
	}
	maybe("expires", "never", "2031-12-31")
	maybe("password", "$6$salt$hash", "$y$j9T$salt$hash")
	maybe("system", true)
	if a["password"] != nil {
		maybe("locked", true, false)
	} else {
		maybe("locked", true)
	}
	return a
}

func sampleUserWithKeys(t *rapid.T) scrolls.Attrs {
	a := sampleUser(t)
	if a["system"] == nil && rapid.Bool().Draw(t, "keyed") {
		a["authorized_keys"] = []any{benchKey}
	}
	return a
}

func sampleGroup(t *rapid.T) scrolls.Attrs {
	a := scrolls.Attrs{"name": rapid.SampledFrom([]string{"made", "sudo"}).Draw(t, "name")}
	if a["name"] == "made" && rapid.Bool().Draw(t, "numbered") {
		a["gid"] = json.Number("4321")
	}
	if rapid.Bool().Draw(t, "system") {
		a["system"] = true
	}
	return a
}
