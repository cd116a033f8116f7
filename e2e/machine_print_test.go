package e2e

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// How a path that moves by itself is compared.
type compared int

const (
	wholly   compared = iota // with all that pathLine tells
	untimed                  // without its mtime
	presence                 // that it is there: type, mode and owner
	nowhere                  // not at all
)

// moving is every path that is not compared in full, and why. A pattern that ends in
// /** is what lies below a directory, the directory itself not. The first that matches
// counts.
var moving = []struct {
	pattern string
	as      compared
	why     string
}{
	{"/proc/**", nowhere, "the kernel's"},
	{"/sys/**", nowhere, "the kernel's"},
	{"/dev/**", nowhere, "made at boot"},
	{"/srv/repo/**", nowhere, "the archive: not of the host, and tests change it"},
	{"/root/site", nowhere, "the test's scroll"},
	{"/root/site/**", nowhere, "the test's scroll"},
	{"/var/lib/golem", nowhere, "golem's journal stays, that is its purpose"},
	{"/var/lib/golem/**", nowhere, "golem's journal stays, that is its purpose"},

	// What is compared as podman tells it.
	{"/var/lib/containers/**", nowhere, "podman's database, and the layers of images and containers"},
	{"/run/containers/**", nowhere, "what of containers runs"},
	{"/etc/containers/networks/*.json", presence, "when it was made, and its id"},
	{"/run/runc", nowhere, "made by the first container"},
	{"/run/runc/**", nowhere, "what of containers runs"},
	{"/run/netns", nowhere, "made by the first container"},
	{"/run/netns/**", nowhere, "a container's network has a random name"},
	{"/run/libpod/**", nowhere, "podman's locks"},

	// What programs write while they run.
	{"/run/systemd/**", nowhere, "systemd's memory of the units; that is compared as units"},
	{"/run/log/**", nowhere, "the log of systemd-journald"},
	{"/run/credentials/**", nowhere, "made and taken away with a service"},
	{"/run/user/**", nowhere, "made and taken away with a login"},
	{"/run/lock/**", presence, "lock files hold the pid of who held them last"},
	{"/run/**", presence, "pid files and sockets are new whenever a service starts"},
	{"/tmp/systemd-private-*", nowhere, "a service's private /tmp has a random name"},
	{"/tmp/systemd-private-*/**", nowhere, "a service's private /tmp has a random name"},
	{"/var/tmp/systemd-private-*", nowhere, "a service's private /var/tmp has a random name"},
	{"/var/tmp/systemd-private-*/**", nowhere, "a service's private /var/tmp has a random name"},
	{"/var/log/journal/**", nowhere, "the log of systemd-journald"},
	{"/var/log/apt/**", nowhere, "apt's log of what it did"},
	{"/var/log/**", presence, "logs grow"},
	{"/var/lib/systemd/random-seed", nowhere, "random"},
	{"/var/lib/systemd/timers/**", nowhere, "when timers last ran"},
	{"/var/lib/systemd/timesync/**", nowhere, "the time"},

	// What is compared as packages.
	{"/var/lib/dpkg/status", nowhere, "rewritten whole in any order; compared by stanza"},
	{"/var/lib/dpkg/status-old", nowhere, "dpkg's backup"},
	{"/var/lib/dpkg/available-old", nowhere, "dpkg's backup"},
	{"/var/lib/dpkg/diversions-old", nowhere, "dpkg's backup"},
	{"/var/lib/dpkg/statoverride-old", nowhere, "dpkg's backup"},
	{"/var/lib/dpkg/tmp.ci", nowhere, "a dpkg that was killed leaves it, and the next one clears it"},
	{"/var/lib/dpkg/tmp.ci/**", nowhere, "a dpkg that was killed leaves it, and the next one clears it"},
	{"/var/lib/dpkg/lock*", nowhere, "made by the first dpkg"},
	{"/var/lib/dpkg/triggers/Lock", nowhere, "made by the first dpkg"},
	{"/var/lib/dpkg/triggers/Unincorp", untimed, "dpkg rewrites it whenever it runs"},
	{"/var/lib/dpkg/triggers/File", untimed, "dpkg rewrites it for every package with triggers"},
	{"/var/lib/dpkg/diversions", untimed, "dpkg-divert rewrites it whole"},
	{"/var/lib/dpkg/statoverride", untimed, "dpkg-statoverride rewrites it whole"},
	{"/var/lib/dpkg/alternatives/*", untimed, "update-alternatives rewrites it whole"},
	{"/var/lib/apt/extended_states", nowhere, "rewritten whole in any order; compared by package"},
	{"/var/lib/apt/lists/**", nowhere, "what the archive has: a cache"},
	{"/var/cache/apt/**", nowhere, "a cache"},
	{"/var/cache/debconf/*-old", nowhere, "debconf's backup"},
	{"/var/cache/debconf/*.dat", nowhere, "rewritten whole in any order; compared by question"},

	// What tools rewrite whole at every change, to the same bytes once it is undone.
	{"/var/cache/ldconfig/aux-cache", nowhere, "a cache, with the times of the libraries"},
	{"/etc/ld.so.cache", untimed, "ldconfig rewrites it whenever it runs"},
	{"/etc/passwd", untimed, "useradd and userdel rewrite it whole"},
	{"/etc/group", untimed, "groupadd and groupdel rewrite it whole"},
	{"/etc/shadow", untimed, "useradd and userdel rewrite it whole"},
	{"/etc/gshadow", untimed, "groupadd and groupdel rewrite it whole"},
	{"/etc/subuid", untimed, "useradd and userdel rewrite it whole"},
	{"/etc/subgid", untimed, "useradd and userdel rewrite it whole"},
	{"/etc/passwd-", nowhere, "the one before the last change"},
	{"/etc/group-", nowhere, "the one before the last change"},
	{"/etc/shadow-", nowhere, "the one before the last change"},
	{"/etc/gshadow-", nowhere, "the one before the last change"},
	{"/etc/subuid-", nowhere, "the one before the last change"},
	{"/etc/subgid-", nowhere, "the one before the last change"},
	{"/etc/.pwd.lock", nowhere, "made by the first useradd"},
}

// comparison says how a path is compared.
func comparison(name string) compared {
	for _, rule := range moving {
		if dir, below := strings.CutSuffix(rule.pattern, "/**"); below {
			if strings.HasPrefix(name, dir+"/") {
				return rule.as
			}
			parts := strings.Count(dir, "/") + 1
			if head := strings.SplitN(name, "/", parts+1); len(head) > parts && strings.Contains(dir, "*") {
				if ok, _ := path.Match(dir, strings.Join(head[:parts], "/")); ok {
					return rule.as
				}
			}
		} else if ok, _ := path.Match(rule.pattern, name); ok {
			return rule.as
		}
	}
	return wholly
}

// print is the whole machine's fingerprint: every path, package, mark, debconf answer,
// unit file, unit that runs or failed, unit that systemd knows an older version of, and the
// packet filter's rules or, on a host with podman, all that podman has.
func (m *machine) print() []string {
	m.t.Helper()
	m.settle()
	units := m.startUnits()
	lines := append(m.paths(), m.packages()...)
	lines = append(lines, units()...)
	if m.exists("/usr/bin/podman") {
		return append(lines, m.pods()...) // its rules in the packet filter follow what runs
	}
	if m.exists("/usr/sbin/nft") {
		for line := range strings.Lines(m.must("nft", "--stateless", "list", "ruleset")) {
			lines = append(lines, "nft "+strings.TrimRight(line, "\n"))
		}
	}
	return lines
}

// same wants the machine as it was.
func (m *machine) same(when string, want []string) {
	m.t.Helper()
	if diff := difference(want, m.print()); diff != "" {
		m.t.Errorf("%s, the host is not as it was:\n%s", when, diff)
	}
}

// settle waits until systemd has nothing left to do.
func (m *machine) settle() {
	m.t.Helper()
	var jobs string
	for range 500 {
		if jobs = m.must("systemctl", "list-jobs", "--no-legend", "--plain"); jobs == "" || strings.HasPrefix(jobs, "No jobs") {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	m.t.Fatalf("systemd does not come to rest:\n%s", jobs)
}

var (
	timed    = regexp.MustCompile(` mtime \S+`)
	measured = regexp.MustCompile(` (one with .*|links \d+) size .*$`)
)

// paths is a line for every path.
func (m *machine) paths() []string {
	m.t.Helper()
	var lines []string
	names := map[uint64]string{}
	root := m.inside("/")
	err := filepath.WalkDir(root+"/", func(full string, entry fs.DirEntry, err error) error {
		name := "/" + strings.TrimPrefix(strings.TrimPrefix(full, root), "/")
		if os.IsNotExist(err) { // a process ended meanwhile
			return nil
		}
		if err != nil {
			return err
		}
		how := comparison(name)
		if how == nowhere {
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		line, err := pathLine(full, name, names, knownHash)
		if err != nil {
			return err
		}
		switch how {
		case untimed:
			line = timed.ReplaceAllString(line, "")
		case presence:
			line = measured.ReplaceAllString(line, "")
		}
		lines = append(lines, line)
		return nil
	})
	m.check(err)
	return lines
}

// A version is what changes when a file's bytes do. Two machines share the inodes of
// the tree they lie over.
type version struct {
	ino         uint64
	size        int64
	mtim, ctime unix.Timespec
}

var knownHashes sync.Map // version to hash

// knownHash hashes a file that it has not hashed before.
func knownHash(name string, st *unix.Stat_t) (string, error) {
	key := version{st.Ino, st.Size, st.Mtim, st.Ctim}
	if sum, ok := knownHashes.Load(key); ok {
		return sum.(string), nil
	}
	sum, err := hashOf(name, st)
	// One that changed just now could change again within the clock's resolution.
	if err == nil && time.Since(time.Unix(st.Ctim.Unix())) > time.Second {
		knownHashes.Store(key, sum)
	}
	return sum, err
}

// packages is a line for every package dpkg knows, every package that apt marked as
// installed automatically, and every question in debconf's databases.
func (m *machine) packages() []string {
	m.t.Helper()
	var lines []string
	for _, s := range m.stanzas("/var/lib/dpkg/status") {
		lines = append(lines, fmt.Sprintf("package %s:%s %s %s stanza %s", s.field("Package"), s.field("Architecture"), s.field("Status"), s.field("Version"), s.sum()))
	}
	for _, s := range m.stanzas("/var/lib/apt/extended_states") {
		if s.field("Auto-Installed") == "1" {
			lines = append(lines, fmt.Sprintf("automatic %s:%s", s.field("Package"), s.field("Architecture")))
		}
	}
	for _, name := range []string{"config", "templates", "passwords"} {
		for _, s := range m.stanzas("/var/cache/debconf/" + name + ".dat") {
			lines = append(lines, fmt.Sprintf("debconf %s %s stanza %s", name, s.field("Name"), s.sum()))
		}
	}
	slices.Sort(lines)
	return lines
}

type stanza string

func (s stanza) field(name string) string {
	_, rest, _ := strings.Cut("\n"+string(s), "\n"+name+": ")
	value, _, _ := strings.Cut(rest, "\n")
	return value
}

func (s stanza) sum() string { return fmt.Sprintf("%.8x", sha256.Sum256([]byte(s))) }

// stanzas is what a file of stanzas holds; nothing, if it is not there.
func (m *machine) stanzas(name string) []stanza {
	m.t.Helper()
	if !m.exists(name) {
		return nil
	}
	var all []stanza
	for text := range strings.SplitSeq(m.read(name), "\n\n") {
		if text = strings.Trim(text, "\n"); text != "" {
			all = append(all, stanza(text))
		}
	}
	return all
}

// startUnits asks for the units, which takes systemd some time, and returns what waits for
// the answer: a line for every unit file, for every unit that is active or failed, and for
// every unit whose file is newer than what systemd read. Units that are inactive come and
// go in systemd's memory.
func (m *machine) startUnits() (wait func() []string) {
	m.t.Helper()
	files := m.start("systemctl", "list-unit-files", "--no-legend", "--no-pager", "--plain")
	stale := m.start("systemctl", "show", "--property=Id,NeedDaemonReload", "*")
	loaded := m.must("systemctl", "list-units", "--all", "--no-legend", "--no-pager", "--plain")
	return func() []string {
		m.t.Helper()
		m.check(files.Wait())
		var lines []string
		for line := range strings.Lines(files.Stdout.(*syncBuffer).String()) {
			if strings.HasPrefix(line, "run-r") { // of a command that runs in a scope, with a random name
				continue
			}
			lines = append(lines, "unit file "+strings.Join(strings.Fields(line), " "))
		}
		for line := range strings.Lines(loaded) {
			f := strings.Fields(line)
			if len(f) >= 4 && f[2] != "inactive" && !fleeting(f[0]) {
				lines = append(lines, "unit "+strings.Join(f[:4], " "))
			}
		}
		m.check(stale.Wait())
		for unit := range strings.SplitSeq(stale.Stdout.(*syncBuffer).String(), "\n\n") {
			if strings.Contains(unit, "NeedDaemonReload=yes") {
				lines = append(lines, "stale unit "+strings.Join(strings.Fields(unit), " "))
			}
		}
		slices.Sort(lines)
		return lines
	}
}

// fleeting says that a unit comes and goes by itself.
func fleeting(unit string) bool {
	switch filepath.Ext(unit) {
	case ".device":
		return true
	case ".target":
		return strings.HasPrefix(unit, "network") // stays reached once a service waited for it
	case ".scope":
		return unit != "init.scope"
	case ".mount":
		return strings.HasPrefix(unit, "run-credentials-") || strings.HasPrefix(unit, "run-netns") || strings.HasPrefix(unit, "run-runc-") || strings.HasPrefix(unit, "var-lib-containers-") // of containers that run
	case ".service", ".slice":
		switch unit { // started by who asks them something, they end after half a minute
		case "systemd-hostnamed.service", "systemd-timedated.service", "systemd-localed.service":
			return true
		}
		return strings.HasPrefix(unit, "user-") || strings.HasPrefix(unit, "user@")
	}
	return false
}
