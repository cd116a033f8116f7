package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// lawPackages are packages with something between them: two that pull in a third, one
// with a conffile, one with a unit that its scripts enable and start.
func lawPackages() []tiny {
	return []tiny{
		{Name: "law-a", Depends: "law-c"},
		{Name: "law-b", Depends: "law-c, law-e"},
		{Name: "law-c"},
		{Name: "law-d", Files: map[string]string{"/etc/law-d.conf": "# of the package\n"}, Conffiles: []string{"/etc/law-d.conf"}},
		{Name: "law-e", Files: map[string]string{"/usr/share/law-e/data": "data\n"}},
		unitPackage("law-u"),
	}
}

// lawHost is a host of the law's: its packages in the archive, a unit that runs and one
// that does not, and a file.
func lawHost(t *testing.T) *machine {
	m := boot(t)
	m.repo(lawPackages()...)
	for name, enable := range map[string]string{"law-busy": "systemctl -q enable --now law-busy.service", "law-idle": "true"} {
		m.write("/etc/systemd/system/"+name+".service", "[Service]\nExecStart=/bin/sleep infinity\nExecReload=/bin/true\n[Install]\nWantedBy=multi-user.target\n")
		m.sh("systemctl daemon-reload; " + enable)
	}
	m.write("/etc/law.conf", "found=1\n")
	return m
}

// lawGlyphs draws the glyphs that a scroll may hold, each with something to draw.
func lawGlyphs(r *rand.Rand) []string {
	n := r.IntN(1000)
	return []string{
		"apt \"law-a\" {}", "apt \"law-b\" {}", "apt \"law-c\" {}", "apt \"law-d\" {}", "apt \"law-e\" {}", "apt \"law-u\" {}",
		fmt.Sprintf("file \"/etc/law-d.conf\" {\n  content = \"n=%d\\n\"\n}", n),
		fmt.Sprintf("file \"/etc/law.conf\" {\n  content = \"n=%d\\n\"\n}", n),
		fmt.Sprintf("file \"/etc/law/new/%d.conf\" {\n  content = \"\"\n}", n%3),
		"line \"l\" {\n  path = \"/etc/hosts\"\n  line = \"10.9.9.9 law\"\n}",
		fmt.Sprintf("service \"law-idle\" {\n  state     = \"running\"\n  enabled   = %v\n  reload_on = [\"file:/etc/law/**\"]\n}", n%2 == 0),
		"service \"law-busy\" {\n  state      = \"running\"\n  restart_on = [\"file:/etc/law.conf\"]\n}",
		fmt.Sprintf("process \"law-own\" {\n  command = [\"/bin/sleep\", \"infinity\"]\n  env     = { N = \"%d\" }\n}", n),
		fmt.Sprintf("user \"law-m\" {\n  uid     = 1500\n  home    = \"/srv/law/homes/m\"\n  comment = \"%d\"\n  groups  = %s\n}", n, []string{"[]", `["adm"]`}[n%2]),
		"file \"/srv/law/homes/m/.config/x\" {\n  content = \"x\"\n}",
		fmt.Sprintf("process \"law-timed\" {\n  command  = [\"/bin/true\"]\n  schedule = \"%s\"\n}", []string{"daily", "weekly"}[n%2]),
	}
}

// lawScroll draws a scroll: some of the glyphs, in some order, in one leaf to three.
// without is left out: of a package and a file that is its conffile, which comes first
// decides whether dpkg puts its own version beside the file, as TestConffile… have it.
func lawScroll(r *rand.Rand, without string) string {
	glyphs := slices.DeleteFunc(lawGlyphs(r), func(g string) bool { return strings.Contains(g, without) })
	r.Shuffle(len(glyphs), func(i, j int) { glyphs[i], glyphs[j] = glyphs[j], glyphs[i] })
	glyphs = glyphs[:1+r.IntN(len(glyphs)-1)]
	user := slices.IndexFunc(glyphs, func(g string) bool { return strings.HasPrefix(g, "user ") })
	if user >= 0 { // before what lies in its home
		glyphs[0], glyphs[user] = glyphs[user], glyphs[0]
	}
	leaves := 1 + r.IntN(3)
	var b strings.Builder
	for leaf := range leaves {
		part := glyphs[leaf*len(glyphs)/leaves : (leaf+1)*len(glyphs)/leaves]
		if len(part) == 0 {
			continue
		}
		fmt.Fprintf(&b, "scroll \"leaf%d\" {\n%s\n}\n", leaf, strings.Join(part, "\n"))
	}
	return b.String()
}

// TestLawOnARealHost: whatever scrolls come one after another, in whatever order their
// packages, units, files and processes stand, the host after them is the host after the
// last alone, a second apply finds nothing to do, and destroy gives the host back.
func TestLawOnARealHost(t *testing.T) {
	t.Parallel()
	rounds, seed := 4, uint64(time.Now().UnixNano())
	if os.Getenv("GOLEM_SOAK") != "" {
		rounds = 60
	}
	if given := os.Getenv("GOLEM_LAW_SEED"); given != "" {
		var err error
		if seed, err = strconv.ParseUint(given, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("GOLEM_LAW_SEED=%d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	m := lawHost(t)
	found := m.print()
	for round := range rounds {
		var last string
		without := []string{`apt "law-d"`, `file "/etc/law-d.conf"`}[r.IntN(2)]
		for range 2 + r.IntN(2) {
			last = lawScroll(r, without)
			m.declare(last)
			m.apply()
			if plan := m.plan(); !strings.Contains(plan, "No changes.") {
				t.Fatalf("round %d: a plan after apply finds\n%s\nof\n%s", round, plan, last)
			}
		}
		after := timeless(m.print())
		m.destroy()
		m.same(fmt.Sprintf("round %d, after destroy of\n%s", round, last), found)
		m.declare(last)
		m.apply()
		if diff := difference(timeless(m.print()), after); diff != "" {
			t.Errorf("round %d: the host after several scrolls (is) is not the host after the last alone (was):\n%s\nof\n%s", round, diff, last)
		}
		m.destroy()
		m.same(fmt.Sprintf("round %d, after destroy of the last alone,\n%s", round, last), found)
		if t.Failed() {
			return
		}
	}
}

// TestExactReturnOfAWholeHost: nginx with a site, a service of the host's, processes with a
// timer, and ten packages with dependencies.
func TestExactReturnOfAWholeHost(t *testing.T) {
	t.Parallel()
	m := lawHost(t)
	var ten []tiny
	var glyphs strings.Builder
	for i := range 10 {
		name := fmt.Sprintf("ten-%d", i)
		ten = append(ten, tiny{
			Name: name, Depends: fmt.Sprintf("ten-lib-%d, law-c", i%3),
			Files: map[string]string{"/etc/ten/" + name: "shipped\n", "/usr/share/ten/" + name: "data\n"}, Conffiles: []string{"/etc/ten/" + name},
		})
		fmt.Fprintf(&glyphs, "apt %q {}\n", name)
	}
	for i := range 3 {
		ten = append(ten, tiny{Name: fmt.Sprintf("ten-lib-%d", i)})
	}
	m.repo(ten...)
	found := m.print()
	m.declare(sitePage("old", "old") + fmt.Sprintf("scroll \"ten\" {\n%s}\n", &glyphs) + `scroll "units" {
  service "law-idle" {
    state   = "running"
    enabled = true
  }
  process "law-timed" {
    command  = ["/bin/true"]
    schedule = "daily"
  }
  process "law-own" {
    command = ["/bin/sleep", "infinity"]
    bundle  = { "words" = "one\n" }
  }
}
`)
	m.apply()
	says(t, m.page(8080), "old")
	says(t, m.plan(), "No changes.")
	m.destroy()
	m.sh("rm -r /var/www") // a first page that nginx's scripts make, outside dpkg's knowledge
	m.same("after destroy", found)
}
