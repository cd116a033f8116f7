package reconcilers

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/zclconf/go-cty/cty"

	"golem/scrolls"
)

// never is the word for an account that does not expire.
const never = "never"

var userKind = Kind{
	Sort: userSort,
	Kind: scrolls.Kind{
		Name: "user", Version: 1, LabelAttr: "name",
		Doc: "A local user. One that is there is taken as it is: only what is written here is compared and set. A new one " +
			"is made with the host's own tools, with a home from `/etc/skel` unless `system` is set. Undeclared, a found " +
			"user gets back what golem changed and nobody else has changed since, each group one by one. One that golem " +
			"made is removed, unless something runs as it or it owns files outside its home: then it is left, and the " +
			"plan names them. Its home goes only if golem made it and nothing was added.",
		Attrs: []scrolls.Attr{
			{Name: "name", Type: cty.String, Doc: "The login name. The label by default."},
			{Name: "uid", Type: cty.Number, Default: "the next free one", Doc: "Its number. golem renumbers nobody: files would keep the old one."},
			{Name: "system", Type: cty.Bool, Default: "`false`", Doc: "Makes it a system user: a low number, no home, no login shell. Of no account once it is there."},
			{Name: "comment", Type: cty.String, Doc: "Its full name, or what it is for."},
			{
				Name: "home", Type: cty.String, Default: "`/home/NAME`; `/nonexistent` for a system user",
				Doc: "Its home directory: made with a new user that is no system user, where there is none. When it changes, none is made and nothing is moved but golem's `authorized_keys`.",
			},
			{Name: "shell", Type: cty.String, Default: "the host's; `/usr/sbin/nologin` for a system user", Doc: "Its login shell."},
			{Name: "group", Type: cty.String, Default: "a group of its own name", Doc: "Its primary group, by name or number."},
			{
				Name: "groups", Type: cty.List(cty.String),
				Doc: "Further groups it is in. It stays in all others.",
			},
			{Name: "exclusive", Type: cty.Bool, Default: "`false`", Doc: "Makes `groups` the whole list: the plan names each group that it leaves."},
			{Name: "locked", Type: cty.Bool, Doc: "Whether its password opens nothing. Keys still do; `expires` closes an account whole."},
			{Name: "expires", Type: cty.String, Doc: "The day from which it is closed, as `2031-12-31`, or `never`."},
			{Name: "password", Type: cty.String, Secret: true, Doc: "Its password, only as a hash (crypt(5)), as `mkpasswd` prints it. Never shown."},
			{
				Name: "authorized_keys", Type: cty.List(cty.String),
				Doc: "SSH keys that open it: lines of `.ssh/authorized_keys` in its home. Keys that others added stay.",
			},
		},
		Identity:  func(a scrolls.Attrs) []string { return []string{str(a, "name")} },
		Check:     checkUser,
		Canonical: canonicalUser,
	},
}

var (
	accountName  = regexp.MustCompile(`^[a-z_][a-z0-9_.-]{0,30}[a-z0-9_.$-]?$`)
	passwordHash = regexp.MustCompile(`^\$[0-9a-zA-Z]+\$[./A-Za-z0-9$=,+-]+$`)
	publicKey    = regexp.MustCompile(`(^|[ ,"])((sk-)?(ssh|ecdsa)-[a-z0-9@.-]+) [A-Za-z0-9+/]{16,}={0,3}( |$)`)
)

// largestID is the largest number that a user or group may have; -1 and what 16 bits make
// of it mean something else to the kernel.
const largestID = 1<<31 - 2

func checkAccountName(attr, name string) []scrolls.Problem {
	if accountName.MatchString(name) {
		return nil
	}
	return []scrolls.Problem{{Attr: attr, Summary: "Not a name for an account", Detail: fmt.Sprintf(
		"%q must be lower-case letters, digits, \"_\", \"-\" and \".\", begin with a letter or \"_\", and have at most 32 of them.", name)}}
}

func checkID(a scrolls.Attrs, attr string) []scrolls.Problem {
	number, given := a[attr].(json.Number)
	if !given {
		return nil
	}
	if id, err := number.Int64(); err == nil && id >= 0 && id <= largestID && id != 1<<16-1 {
		return nil
	}
	return []scrolls.Problem{{Attr: attr, Summary: "Not a number for an account", Detail: fmt.Sprintf("%s is no whole number from 0 on that a %s can have.", number, attr)}}
}

// checkUser says what is wrong with a user before any host is looked at.
func checkUser(a scrolls.Attrs) []scrolls.Problem {
	problems := append(checkAccountName("name", str(a, "name")), checkID(a, "uid")...)
	wrong := func(attr, summary, format string, args ...any) {
		problems = append(problems, scrolls.Problem{Attr: attr, Summary: summary, Detail: fmt.Sprintf(format, args...)})
	}
	for _, attr := range []string{"home", "shell"} {
		if text, ok := a[attr].(string); ok && (!path.IsAbs(text) || path.Clean(text) != text) {
			wrong(attr, "Path is not absolute", "%q must be a clean path from the root.", text)
		}
	}
	for _, attr := range []string{"comment", "home", "shell"} {
		if strings.ContainsAny(str(a, attr), ":\n\r\x00") {
			wrong(attr, "Not one field", "It stands in a line of /etc/passwd: it cannot hold \":\" or a line break.")
		}
	}
	if _, given := a["group"]; given {
		problems = append(problems, checkGroupRef("group", str(a, "group"))...)
	}
	for _, name := range words(a, "groups") {
		problems = append(problems, checkGroupRef("groups", name)...)
	}
	if _, given := a["groups"]; a["exclusive"] == true && !given {
		wrong("exclusive", "Exclusive without groups", "Write which groups are the whole list; groups = [] for none.")
	}
	if text, ok := a["expires"].(string); ok && text != never {
		if day, err := time.Parse(time.DateOnly, text); err != nil {
			wrong("expires", "Not a day", "%q is not a day like \"2031-12-31\", nor \"never\".", text)
		} else if day.Unix() <= 0 { // shadow(5) has no number for it
			wrong("expires", "Not a day", "%q is too early: the first that can be kept is 1970-01-02, which closes an account as well.", text)
		}
	}
	if text, ok := a["password"].(string); ok && !passwordHash.MatchString(text) {
		// At the block, so that the line with the password is not shown.
		wrong("", "Password is not a hash", "golem takes a password only as a hash, as mkpasswd or openssl passwd -6 print it: a text that begins like \"$6$\" or \"$y$\".")
	}
	for _, key := range words(a, "authorized_keys") {
		switch {
		case strings.Contains(key, "PRIVATE KEY"):
			wrong("", "Private key", "One of authorized_keys is a private key. Write the public one, and take the private one out of the scroll.")
		case strings.ContainsAny(key, "\n\r\x00") || !publicKey.MatchString(key):
			wrong("authorized_keys", "Not an SSH key", "%q is not one line with a public key, like \"ssh-ed25519 AAAA… name\".", key)
		}
	}
	if str(a, "name") == "root" && (a["locked"] == true || a["expires"] != nil && a["expires"] != never) {
		wrong("name", "Root would be shut out", "golem does not lock or end root's account.")
	}
	return problems
}

// checkGroupRef checks the name or number of a group.
func checkGroupRef(attr, name string) []scrolls.Problem {
	if regexp.MustCompile(`^[0-9]{1,10}$`).MatchString(name) && attr == "group" {
		return nil
	}
	return checkAccountName(attr, name)
}

// canonicalUser leaves out what is so by default, and the order of lists that have none.
func canonicalUser(a scrolls.Attrs) scrolls.Attrs {
	c := maps.Clone(a)
	for _, name := range []string{"system", "exclusive"} {
		if c[name] == false {
			delete(c, name)
		}
	}
	if _, given := c["groups"]; given {
		names := words(a, "groups")
		slices.Sort(names)
		c["groups"] = listOf(slices.Compact(names))
	}
	return c
}

func listOf(names []string) []any {
	list := make([]any, len(names))
	for i, name := range names {
		list[i] = name
	}
	return list
}
