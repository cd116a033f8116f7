package apply_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"golem/reconcilers"
	"golem/scrolls"
)

// The things that leaf number 3 of a failLaw may declare, each in one of two variants.
// All are its own but the file that line h is put into.
//
//	f  file /l3/f, found with other bytes    a  package l3-a, which needs l3-b
//	g  file /l3/new/g in a made directory    u  unit l3-u.service, told of changes of f
//	k  link /l3/k                            p  process l3-p
//	d  directory /l3/d                       t  line in /l3/text
//	h  line in /etc/hosts
const lawThings = "fgkdthuap"

// A leafWish is what one leaf is to declare: variants by thing, in an order.
type leafWish struct {
	order   []string
	variant map[string]string
	trigger string // "reload_on", "restart_on", or none
	check   bool
}

// A wish is a scroll to be: leaves by their path, and the policy blocks of scrolls by
// theirs, knob by knob; "" is the root's and "host" the host's own.
type wish struct {
	leaves map[string]*leafWish
	knobs  map[string]map[string]string
}

var lawKnobs = map[string][]string{
	"on_exhaust": {`"rollback"`, `"keep"`}, "timeout": {`"1m"`, `"90s"`}, "max_attempts": {"1", "2", "3"},
	"base_delay": {`"0s"`, `"1s"`}, "backoff_multiplier": {"1", "3"}, "max_delay": {`"2s"`}, "max_elapsed": {`"0s"`, `"1m30s"`, `"1h"`},
}

// drawKnobs draws a policy block; "" for none.
func drawKnobs(t *rapid.T, where string) map[string]string {
	knobs := map[string]string{}
	if rapid.IntRange(0, 2).Draw(t, "policy of "+where) > 0 {
		for _, name := range slices.Sorted(maps.Keys(lawKnobs)) {
			if rapid.IntRange(0, 2).Draw(t, name+" of "+where) == 0 {
				knobs[name] = rapid.SampledFrom(lawKnobs[name]).Draw(t, "its value")
			}
		}
	}
	return knobs
}

// drawPaths draws where the leaves stand in the tree.
func drawPaths(t *rapid.T) []string {
	var paths []string
	for i := range rapid.IntRange(2, 6).Draw(t, "leaves") {
		paths = append(paths, rapid.SampledFrom([]string{"", "", "g/", "g/h/", "k/"}).Draw(t, "scroll around")+fmt.Sprintf("l%d", i))
	}
	return paths
}

// drawWish draws a scroll over some of the leaves.
func drawWish(t *rapid.T, paths []string) *wish {
	w := &wish{leaves: map[string]*leafWish{}, knobs: map[string]map[string]string{}}
	for _, path := range paths {
		if rapid.IntRange(0, 4).Draw(t, "no "+path) == 0 && len(w.leaves) > 0 {
			continue
		}
		w.leaves[path] = drawLeafWish(t)
		w.knobs[path] = drawKnobs(t, path)
		for up := path; strings.Contains(up, "/"); {
			if up = up[:strings.LastIndex(up, "/")]; w.knobs[up] == nil {
				w.knobs[up] = drawKnobs(t, up)
			}
		}
	}
	w.knobs[""], w.knobs["host"] = drawKnobs(t, "root"), drawKnobs(t, "host")
	return w
}

func drawLeafWish(t *rapid.T) *leafWish {
	l := &leafWish{variant: map[string]string{}}
	things := rapid.Permutation(strings.Split(lawThings, "")).Draw(t, "things")
	l.order = things[:rapid.IntRange(1, 5).Draw(t, "glyphs")]
	for _, thing := range l.order {
		l.variant[thing] = rapid.SampledFrom([]string{"1", "2"}).Draw(t, "variant of "+thing)
	}
	l.trigger = rapid.SampledFrom([]string{"", "reload_on", "restart_on"}).Draw(t, "trigger")
	l.check = rapid.IntRange(0, 2).Draw(t, "check") == 0
	return l
}

// policy is what holds for a leaf: each knob is the nearest one's. present says which
// scrolls there are.
func (w *wish) policy(path string) scrolls.Policy {
	p := scrolls.BuiltinPolicy
	p.Retry.JitterFraction = 0
	at := []string{"host", ""}
	for i := range path {
		if path[i] == '/' {
			at = append(at, path[:i])
		}
	}
	for _, where := range append(at, path) {
		for name, text := range w.knobs[where] {
			setKnob(&p, name, strings.Trim(text, `"`))
		}
	}
	return p
}

func setKnob(p *scrolls.Policy, name, text string) {
	d, _ := time.ParseDuration(text)
	n := 0
	_, _ = fmt.Sscan(text, &n)
	switch name {
	case "on_exhaust":
		p.OnExhaust = text
	case "timeout":
		p.Timeout = d
	case "max_attempts":
		p.Retry.MaxAttempts = n
	case "base_delay":
		p.Retry.BaseDelay = d
	case "backoff_multiplier":
		p.Retry.BackoffMultiplier = float64(n)
	case "max_delay":
		p.Retry.MaxDelay = d
	case "max_elapsed":
		p.Retry.MaxElapsed = d
	}
}

// policyText is a policy block.
func policyText(knobs map[string]string, retry string) string {
	outer, inner := "", retry
	for _, name := range slices.Sorted(maps.Keys(knobs)) {
		line := name + " = " + knobs[name] + "\n"
		if name == "on_exhaust" || name == "timeout" {
			outer += line
		} else {
			inner += line
		}
	}
	return "policy {\n" + outer + "retry {\n" + inner + "}\n}\n"
}

// load writes the scroll in the language, and the host's policy, and reads them.
func (w *wish) load(t tester, dir string) *scrolls.Scroll {
	host := filepath.Join(dir, "golem.hcl")
	text := "name = \"law\"\n" + policyText(w.knobs[""], "") + w.body("")
	for name, text := range map[string]string{"law.hcl": text, "golem.hcl": policyText(w.knobs["host"], "jitter_fraction = 0\n")} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, err := scrolls.Load(filepath.Join(dir, "law.hcl"), scrolls.Options{Kinds: reconcilers.Kinds(), Checks: reconcilers.Checks, HostPolicy: host})
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return s
}

// body is the text of the scrolls below a path, in the order of their names.
func (w *wish) body(prefix string) string {
	names := map[string]bool{}
	for path := range w.leaves {
		if rest, below := strings.CutPrefix(path, prefix); below {
			name, _, _ := strings.Cut(rest, "/")
			names[name] = true
		}
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(names)) {
		fmt.Fprintf(&b, "scroll %q {\n%s", name, policyText(w.knobs[prefix+name], ""))
		if leaf := w.leaves[prefix+name]; leaf != nil {
			for _, thing := range leaf.order {
				b.WriteString(leaf.glyphText(name, thing))
			}
			if leaf.check {
				fmt.Fprintf(&b, "check \"command\" {\n run = [\"check-%s\"]\n}\n", name)
			}
		} else {
			b.WriteString(w.body(prefix + name + "/"))
		}
		b.WriteString("}\n")
	}
	return b.String()
}

// lawKey is the key of a thing of a leaf.
func lawKey(leaf, thing string) scrolls.Key {
	l := filepath.Base(leaf)
	return scrolls.Key(map[string]string{
		"f": "file:/" + l + "/f", "g": "file:/" + l + "/new/g", "k": "link:/" + l + "/k", "d": "directory:/" + l + "/d",
		"t": "line:/" + l + "/text:golem's", "h": "line:/etc/hosts:10.0.0.1 " + l,
		"u": "service:" + l + "-u.service", "a": "apt:" + l + "-a", "p": "process:" + l + "-p",
	}[thing])
}

// glyphText is a thing in the language.
func (l *leafWish) glyphText(leaf, thing string) string {
	v := l.variant[thing]
	second := v == "2"
	body := ""
	add := func(format string, args ...any) { body += "  " + fmt.Sprintf(format, args...) + "\n" }
	kind, label := "file", "/"+leaf+"/"+thing
	switch thing {
	case "f":
		add("content = \"f%s\\n\"", v)
		if second {
			add(`mode = "0600"`)
		}
	case "g":
		label = "/" + leaf + "/new/g"
		add("content = \"g%s\\n\"", v)
	case "k":
		kind = "link"
		add("target = \"to-%s\"", v)
	case "d":
		kind = "directory"
		add("mode = %q", map[string]string{"1": "0711", "2": "0750"}[v])
	case "t":
		kind = "line"
		add("path = \"/%s/text\"\nline = \"golem's\"", leaf)
	case "h":
		kind = "line"
		add("path = \"/etc/hosts\"\nline = \"10.0.0.1 %s\"", leaf)
	case "u":
		kind, label = "service", leaf+"-u"
		add("state = %q\nenabled = %v", map[string]string{"1": "running", "2": "stopped"}[v], second != (leaf > "l2"))
		if l.trigger != "" {
			add("%s = [\"file:/%s/f\"]", l.trigger, leaf)
		}
	case "a":
		kind, label = "apt", leaf+"-a"
		add("version = \"%s.0\"\nallow_downgrade = true", v)
	case "p":
		kind, label = "process", leaf+"-p"
		add("command = [\"/fake/run\", %q]\nbundle = { word = %q }", v, v)
		if second && leaf > "l1" {
			add(`schedule = "daily"`)
		}
	}
	return fmt.Sprintf("%s %q {\n%s}\n", kind, label, body)
}
