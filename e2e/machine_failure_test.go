package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// everyGlyph are the glyphs of a leaf that holds every kind, in one of two versions: each is
// another in the second.
func everyGlyph(version string) []string {
	second := version == "2"
	state, schedule, mode := "running", "daily", "0711"
	if second {
		state, schedule, mode = "stopped", "weekly", "0750"
	}
	return []string{
		fmt.Sprintf("directory \"/etc/fl\" {\n  mode = %q\n}", mode),
		fmt.Sprintf("file \"/etc/fl/conf\" {\n  content = \"conf %s\\n\"\n}", version),
		fmt.Sprintf("service \"fl-busy\" {\n  state = %q\n}", state),
		fmt.Sprintf("apt \"fl-a\" {\n  version         = \"%s.0\"\n  allow_downgrade = true\n}", version),
		fmt.Sprintf("link \"/etc/fl-found\" {\n  target = \"to-%s\"\n}", version),
		fmt.Sprintf("service \"fl-idle\" {\n  state     = \"running\"\n  enabled   = %v\n  reload_on = [\"file:/etc/fl/conf\"]\n}", second),
		fmt.Sprintf("line \"l\" {\n  path  = \"/etc/hosts\"\n  line  = \"10.9.9.9 fl-%s\"\n}", version),
		fmt.Sprintf("process \"fl-own\" {\n  command  = [\"/bin/true\"]\n  schedule = %q\n  bundle   = { word = \"%s\\n\" }\n}", schedule, version),
	}
}

// whatBreaks are glyphs that cannot be enacted, and what is told of each.
var whatBreaks = [][2]string{
	{`apt "fl-broken" {}`, "fl-broken cannot be set up"},
	{"service \"fl-fails\" {\n  state = \"running\"\n}", "no such device"},
	{"process \"fl-ends\" {\n  command = [\"/bin/sh\", \"-c\", \"echo out of paper; exit 7\"]\n  restart = \"no\"\n}", "exit status 7"},
}

// failHost is a host for it.
func failHost(t *testing.T) *machine {
	m := boot(t)
	m.repo(tiny{Name: "fl-a", Version: "1.0", Depends: "fl-lib", Files: map[string]string{"/etc/fl-a.conf": "1\n"}, Conffiles: []string{"/etc/fl-a.conf"}},
		tiny{Name: "fl-a", Version: "2.0", Depends: "fl-lib, fl-more", Files: map[string]string{"/etc/fl-a.conf": "2\n"}, Conffiles: []string{"/etc/fl-a.conf"}},
		tiny{Name: "fl-lib"}, tiny{Name: "fl-more"},
		tiny{Name: "fl-broken", Depends: "fl-more", Postinst: "echo fl-broken cannot be set up >&2\nexit 1\n"})
	m.unit("fl-busy.service", sleeper)
	m.unit("fl-idle.service", "[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/true\nExecReload=/bin/cp /etc/fl/conf /run/fl-idle.read\n[Install]\nWantedBy=multi-user.target\n")
	m.unit("fl-fails.service", "[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/sh -c 'echo no such device; exit 1'\n")
	m.sh("systemctl start fl-busy; ln -s found /etc/fl-found; touch -h -d @1000000000 /etc/fl-found; touch /run/fl-idle.read")
	return m
}

// wholeScroll is that leaf and a sibling, which shares a file with it.
func wholeScroll(onExhaust string, glyphs []string, sibling int) string {
	leaf := ""
	if len(glyphs) > 0 {
		leaf = fmt.Sprintf("scroll \"whole\" {\npolicy {\non_exhaust = %q\nretry {\nmax_attempts = 1\n}\n}\n%s\n}\n", onExhaust, strings.Join(glyphs, "\n"))
	}
	return leaf + fmt.Sprintf(`scroll "sibling" {
file "/etc/sibling" {
content = "sibling %d\n"
}
line "s" {
path = "/etc/hosts"
line = "10.9.9.8 sibling-%d"
}
}
`, sibling, sibling)
}

// less is a fingerprint without what the sibling makes, and without the times of what dpkg
// notes of a package anew when that comes back.
func less(lines []string) []string {
	var out []string
	for _, line := range lines {
		switch {
		case strings.Contains(line, "/etc/sibling") || strings.Contains(line, "/etc/hosts"):
		case strings.Contains(line, "/var/lib/dpkg/info/fl-"):
			out = append(out, timeless([]string{line})...)
		default:
			out = append(out, line)
		}
	}
	return out
}

// fails applies a scroll whose leaf fails with what is told, and wants the leaf's part of
// the host as it was to the last time stamp, and the sibling's new.
func (m *machine) fails(at, scroll, told string, sibling int, hosts, before []string) {
	m.t.Helper()
	m.declare(scroll)
	a := m.golem(3, "apply", "--auto-approve", site)
	said := strings.Join(strings.Fields(a.stdout), " ")
	for _, want := range []string{told, "rolled back whole: it failed, and is as it was before this run", "settled sibling:"} {
		if !strings.Contains(said, want) {
			m.t.Errorf("%s: it does not tell %q:\n%s", at, want, a.stdout)
		}
	}
	if diff := difference(before, less(m.print())); diff != "" {
		m.t.Errorf("%s: the leaf is not what it was:\n%s", at, diff)
	}
	lines := strings.Split(m.read("/etc/hosts"), "\n")
	for _, want := range append(hosts, fmt.Sprintf("10.9.9.8 sibling-%d", sibling)) {
		if !slices.Contains(lines, want) {
			m.t.Errorf("%s: /etc/hosts has no %q: %q", at, want, lines)
		}
	}
	if slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(l, "10.9.9.9") && !slices.Contains(hosts, l) }) {
		m.t.Errorf("%s: /etc/hosts is %q", at, lines)
	}
	if got := m.read("/etc/sibling"); got != fmt.Sprintf("sibling %d\n", sibling) {
		m.t.Errorf("%s: the sibling's file is %q", at, got)
	}
	if leaks := m.run("sh", "-c", "find / -xdev -name '.golem-*' | grep .").stdout; leaks != "" {
		m.t.Errorf("%s: left behind: %s", at, leaks)
	}
}

// with puts a glyph into a list.
func with(glyphs []string, at int, glyph string) []string {
	return slices.Insert(slices.Clone(glyphs), at, glyph)
}

// mended applies a scroll that nothing is wrong with any more, and takes all back.
func (m *machine) mended(scroll string, found []string) {
	m.t.Helper()
	m.declare(scroll)
	m.apply()
	says(m.t, m.plan(), "No changes.")
	m.destroy()
	m.sh("systemctl start fl-busy; systemctl reset-failed") // golem starts nothing on the way out
	m.same("mended, and destroyed", found)
}

// A leaf of every kind fails at every place in it, as it is installed, replaced and
// removed: it is then what it was, and its sibling is new.
func TestALeafThatFailsAnywhereIsWhatItWas(t *testing.T) {
	t.Parallel()
	situations := map[string]func(*machine) func(k int, broken string) ([]string, []string){
		"fresh": func(*machine) func(int, string) ([]string, []string) {
			return func(k int, broken string) ([]string, []string) { return with(everyGlyph("1"), k, broken), nil }
		},
		"replace": func(m *machine) func(int, string) ([]string, []string) {
			m.declare(wholeScroll("rollback", everyGlyph("1"), 0))
			m.apply()
			return func(k int, broken string) ([]string, []string) {
				return with(everyGlyph("2"), k, broken), []string{"10.9.9.9 fl-1"}
			}
		},
		"remove": func(m *machine) func(int, string) ([]string, []string) {
			m.declare(wholeScroll("rollback", everyGlyph("1"), 0))
			m.apply()
			return func(k int, broken string) ([]string, []string) { // from the k-th on they leave
				return append(everyGlyph("1")[:k], broken), []string{"10.9.9.9 fl-1"}
			}
		},
	}
	for name, begin := range situations {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := failHost(t)
			found := m.print()
			glyphs := begin(m)
			before := less(m.print())
			pid := m.must("systemctl", "show", "-P", "MainPID", "fl-busy.service")
			for k := range len(everyGlyph("1")) + 1 {
				broken := whatBreaks[k%len(whatBreaks)]
				scroll, hosts := glyphs(k, broken[0])
				at := fmt.Sprintf("%s, %q at %d", name, broken[1], k)
				m.fails(at, wholeScroll("rollback", scroll, k+1), broken[1], k+1, hosts, before)
				if k < 3 || name != "replace" { // from there on it was stopped, and started again
					if now := m.must("systemctl", "show", "-P", "MainPID", "fl-busy.service"); now != pid {
						t.Errorf("%s: fl-busy was started anew", at)
					}
				}
				if read := m.read("/run/fl-idle.read"); name == "replace" && k >= 2 && read != "conf 1\n" {
					t.Errorf("%s: fl-idle has last read %q", at, read)
				}
				if t.Failed() {
					return
				}
			}
			m.mended(wholeScroll("rollback", everyGlyph("2"), 100), found)
		})
	}
}

// Under keep, what stands before the glyph that failed stays, and nothing after it is
// begun; the next run goes on from there.
func TestALeafThatIsKeptStandsUpToWhatFailed(t *testing.T) {
	t.Parallel()
	m := failHost(t)
	found := m.print()
	for n, k := range []int{0, 4, 8} {
		broken := whatBreaks[n]
		m.declare(wholeScroll("keep", with(everyGlyph("1"), k, broken[0]), 1))
		a := m.golem(3, "apply", "--auto-approve", site)
		says(t, a.stdout, broken[1])
		says(t, strings.Join(strings.Fields(a.stdout), " "), "settled sibling:")
		kept := timeless(m.print())
		if n := strings.Count(m.golem(0, "state", "list", "--json").stdout, `"key"`); n != k+2 {
			t.Errorf("kept at %d: %d keys are in force", k, n)
		}
		m.declare(wholeScroll("keep", everyGlyph("1"), 1))
		m.apply()
		m.destroy()
		m.same(fmt.Sprintf("kept at %d, mended and destroyed", k), found)
		m.declare(wholeScroll("keep", everyGlyph("1")[:k], 1))
		m.apply()
		if diff := difference(timeless(m.print()), kept); diff != "" {
			t.Errorf("kept at %d (is), and what stands before that alone (was):\n%s", k, diff)
		}
		m.destroy()
	}
	m.same("in the end", found)
}
