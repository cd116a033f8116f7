package apply_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"golem/apply"
	"golem/plan"
	"golem/reconcilers"
	"golem/reconcilers/fake"
	"golem/scrolls"
	"golem/state"
)

// A trouble is something that is to fail while one leaf is enacted.
type trouble struct {
	leaf  string
	thing string // one of lawThings, or "trigger", or "check"
	times int    // how often; -1: for ever
	fatal bool   // in a way that no retry mends
	hangs bool   // it does not end, until its time is up
	late  bool   // it does what it is told before it fails
	back  int    // how often the way back fails, too

	hits      int
	over      bool // it failed for the last time that the policy lets it
	backHits  int  // on the way back of a leaf that is taken back
	takeBacks int  // on the way back to another try
}

func (tr *trouble) String() string {
	return fmt.Sprintf("%s of %s: times %d fatal %v hangs %v late %v back %d; hits %d over %v backHits %d takeBacks %d",
		tr.thing, tr.leaf, tr.times, tr.fatal, tr.hangs, tr.late, tr.back, tr.hits, tr.over, tr.backHits, tr.takeBacks)
}

// A failHost is a host with files, packages and units, all of which can be told to fail,
// on a clock that nobody waits for.
type failHost struct {
	*lawHost
	sd       *fake.Systemd
	m        *fake.Machine
	now      time.Time
	wish     *wish // what is being applied
	troubles []*trouble
	leaf     string // whose turn it is
	back     string // "again", "last": what is being taken back for; "" for nothing
	first    map[string]time.Time
	last     map[string]*trouble // what failed last in each leaf
	fatal    map[string]*trouble // what of it failed for the last time
	checked  map[string]int
	read     map[string]string // what each unit's program last read
	wrong    []string          // what is against the contract
	// recovering says that the way back fails whosever turn it is.
	recovering bool
	events     []apply.Event
}

// newFailHost makes a host: what of each leaf is there already is a matter of bits.
func newFailHost(t tester, paths []string, found int) *failHost {
	h := &failHost{lawHost: newLawHost(t), now: time.Unix(1_700_000_000, 0), read: map[string]string{}}
	h.sd, h.m = &fake.Systemd{Root: h.root}, fake.New(h.root)
	wants := h.root + "/etc/systemd/system/multi-user.target.wants" // which no host is without
	err := errors.Join(h.sd.Boot(), os.MkdirAll(wants, 0o755), os.Symlink("/usr/lib/systemd/system/other.service", wants+"/other.service"), os.WriteFile(h.root+"/etc/hosts", []byte("127.0.0.1 localhost"), 0o644))
	for _, path := range paths {
		l := filepath.Base(path)
		bit := func() bool { found = found*69069 + 1; return found>>16&1 == 1 }
		err = errors.Join(err, os.Mkdir(h.root+"/"+l, 0o755), os.WriteFile(h.root+"/"+l+"/text", []byte("one\r\ntwo"), 0o640),
			h.sd.Write(libUnits+l+"-u.service", "[Service]\nType=notify\nExecStart=/fake/run\nExecReload=/fake/reload\n[Install]\nWantedBy=multi-user.target\n"))
		if bit() {
			err = errors.Join(err, os.WriteFile(h.root+"/"+l+"/f", []byte("found"), 0o4755))
		}
		if bit() {
			err = errors.Join(err, os.Symlink("found", h.root+"/"+l+"/k"))
		}
		if bit() {
			err = errors.Join(err, os.Mkdir(h.root+"/"+l+"/d", 0o700))
		}
		for _, verb := range []string{"start", "enable"} {
			if bit() {
				h.sd.Run("systemctl", verb, l+"-u.service")
			}
		}
		for _, version := range []string{"1.0", "2.0"} {
			h.m.Archive = append(h.m.Archive,
				&fake.Package{Name: l + "-b", Version: version, Arch: "all"},
				&fake.Package{Name: l + "-a", Version: version, Arch: "all", Depends: l + "-b, all-c", Conffiles: map[string]string{"/etc/" + l + ".conf": version}})
		}
		if bit() {
			h.m.Install(h.m.Archive[len(h.m.Archive)-4], true)
		}
		h.reads(l + "-u.service")
	}
	h.m.Archive = append(h.m.Archive, &fake.Package{Name: "all-c", Version: "1.0", Arch: "all"})
	if err := errors.Join(err, h.m.Save()); err != nil {
		t.Fatal(err)
	}
	h.arrange = h.arranged
	return h
}

// reads lets a unit's program read its file.
func (h *failHost) reads(unit string) {
	text, err := os.ReadFile(h.root + "/" + strings.TrimSuffix(unit, "-u.service") + "/f")
	h.read[unit] = fmt.Sprintf("%q, there %v", text, err == nil)
}

func (h *failHost) arranged(host *reconcilers.Host) {
	host.Booted = true
	host.Exec = func(_ context.Context, c reconcilers.Command) (reconcilers.Output, error) { return h.exec(c) }
	host.Sleep = func(_ context.Context, d time.Duration) error {
		h.pass(d)
		if h.back == "again" {
			h.back = ""
		}
		return nil
	}
}

func (h *failHost) pass(d time.Duration) {
	h.now = h.now.Add(d)
	h.sd.Sleep(d)
}

// exec answers a command, and fails where that is its fate.
func (h *failHost) exec(c reconcilers.Command) (reconcilers.Output, error) {
	line := strings.Join(c.Argv, " ")
	if l, ok := strings.CutPrefix(c.Argv[0], "check-"); ok {
		h.checked[l]++
		if tr := h.struck("check", line); tr != nil {
			return reconcilers.Output{}, h.fail(tr, c)
		}
		return reconcilers.Output{}, nil
	}
	if !c.Changes {
		return h.answer(c)
	}
	if want := h.wish.policy(h.leaf).Timeout; h.leaf != plan.WaveLeaf && h.leaf != "" && c.Timeout != want {
		h.wrong = append(h.wrong, fmt.Sprintf("%s may take %s in %s, want %s", line, c.Timeout, h.leaf, want))
	}
	tr := h.struck("exec", line)
	if tr == nil {
		return h.answer(c)
	}
	if tr.late {
		if out, err := h.answer(c); err != nil {
			return out, err
		}
	}
	return reconcilers.Output{}, h.fail(tr, c)
}

func (h *failHost) answer(c reconcilers.Command) (reconcilers.Output, error) {
	a, ok := h.sd.Run(c.Argv...)
	var err error
	if ok && c.Changes && a.Code == 0 {
		for _, word := range c.Argv {
			if strings.HasSuffix(word, "-u.service") && strings.Contains(" start reload restart ", " "+c.Argv[2]+" ") {
				h.reads(word)
			}
		}
	}
	if !ok {
		a, err = h.m.Run(c.Argv, c.Dir)
	}
	out := reconcilers.Output{Stdout: []byte(a.Out), Stderr: []byte(a.Err)}
	if err == nil && a.Code != 0 {
		err = &reconcilers.CommandError{Argv: c.Argv, Code: a.Code, Said: a.Err, Err: fmt.Errorf("exit status %d", a.Code)}
	}
	return out, err
}

// struck says which trouble an operation runs into; nil for none.
func (h *failHost) struck(op, what string) *trouble {
	for _, tr := range h.troubles {
		if h.leaf == "" && !h.recovering && tr.thing == "trigger" && tr.meets(op, what, "") {
			h.wrong = append(h.wrong, fmt.Sprintf("%s, when the turn of %s is over", what, tr.leaf))
		}
		if h.recovering && h.leaf == "" && tr.backHits > 0 && tr.back > 0 && tr.meets(op, what, "last") {
			tr.back--
			return tr
		}
		if tr.leaf != h.leaf || !tr.meets(op, what, h.back) {
			continue
		}
		// A leaf that is kept is enacted once more, up to what failed.
		forth := h.back == "" || h.back == "last" && tr.thing != "trigger" && !undoing()
		switch {
		case forth && tr.times != 0:
			tr.times--
			return tr
		case forth:
		case h.back == "again" && tr.back > 0:
			tr.back--
			tr.takeBacks++
			return tr
		case h.back == "last" && tr.back > 0:
			tr.back--
			tr.backHits++
			return tr
		}
	}
	return nil
}

// undoing says that something is being taken back.
func undoing() bool {
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	for {
		frame, more := frames.Next()
		if strings.HasSuffix(frame.Function, ".Undo") {
			return true
		}
		if !more {
			return false
		}
	}
}

// meets says whether an operation is what the trouble is about.
func (tr *trouble) meets(op, what, back string) bool {
	l := filepath.Base(tr.leaf)
	word := func(w string) bool {
		return slices.ContainsFunc(strings.Fields(what), func(f string) bool { return f == w || strings.HasPrefix(f, w+"=") || f == w+"-" })
	}
	tells := op == "exec" && (strings.Contains(what, " reload ") || strings.Contains(what, " restart ")) && word(l+"-u.service")
	if strings.HasPrefix(what, "/") && !slices.Contains([]string{"rename", "mkdir", "rmdir", "meta", "open", "symlink"}, op) {
		return false
	}
	switch tr.thing {
	case "check":
		return op == "check" && word("check-"+l)
	case "trigger":
		return tells
	case "u":
		return op == "exec" && word(l+"-u.service") && !tells || op == "symlink" && back != "" && strings.HasSuffix(what, l+"-u.service")
	case "a":
		return op == "exec" && word(l+"-a")
	case "p":
		return op == "exec" && word(l+"-p.service") || op == "rename" && strings.HasSuffix(what, "/"+l+"-p.service")
	case "h":
		return what == "/etc/hosts"
	case "t":
		return what == "/"+l+"/text"
	case "g":
		return what == "/"+l+"/new/g"
	}
	return what == "/"+l+"/"+tr.thing
}

// fail is one failure. It notes whether the policy lets golem try again.
func (h *failHost) fail(tr *trouble, c reconcilers.Command) error {
	if tr.hangs && len(c.Argv) > 0 {
		h.pass(c.Timeout)
	}
	if (h.back == "" || h.back == "last" && tr.thing != "trigger" && !undoing()) && h.leaf != "" {
		h.count(tr)
	}
	switch {
	case len(c.Argv) == 0 && tr.fatal:
		return unix.ENOSPC
	case len(c.Argv) == 0:
		return unix.EBUSY
	case tr.fatal && tr.thing != "check": // a check may always come to hold
		return unix.EACCES
	case tr.hangs:
		return &reconcilers.CommandError{Argv: c.Argv, Code: -1, Err: fmt.Errorf("still running after %s", c.Timeout)}
	}
	return &reconcilers.CommandError{Argv: c.Argv, Code: 1, Said: "told to fail", Err: errors.New("exit status 1")}
}

// count counts a failure under the leaf's policy: per glyph the tries and the delays, and
// per leaf the time since its first failure.
func (h *failHost) count(tr *trouble) {
	if tr.over {
		h.wrong = append(h.wrong, fmt.Sprintf("tried again after its last try: %s", tr))
	}
	tr.hits++
	h.last[tr.leaf] = tr
	if h.first[tr.leaf].IsZero() {
		h.first[tr.leaf] = h.now
	}
	p := h.wish.policy(tr.leaf).Retry
	delay := p.BaseDelay
	for range tr.hits - 1 {
		delay = min(time.Duration(float64(delay)*p.BackoffMultiplier), p.MaxDelay)
	}
	tr.over = tr.fatal && tr.thing != "check" || tr.hits >= p.MaxAttempts || h.now.Add(min(delay, p.MaxDelay)).Sub(h.first[tr.leaf]) > p.MaxElapsed
	if tr.over {
		h.fatal[tr.leaf] = tr
	}
}

// told follows the run.
func (h *failHost) told(ev apply.Event) {
	h.events = append(h.events, ev)
	switch ev.Type {
	case "leaf_started":
		h.leaf, h.back = ev.Leaf, ""
	case "retrying":
		if h.back == "" {
			h.back = "again"
		}
	case "failed":
		h.back = "last"
	case "leaf_ended":
		h.leaf, h.back = "", ""
	}
}

// run applies a wish; nil is a destroy.
func (h *failHost) run(t tester, w *wish, s *scrolls.Scroll, troubles ...*trouble) (*apply.Report, error) {
	h.wish, h.troubles, h.leaf, h.back = w, troubles, "", ""
	h.last, h.fatal = map[string]*trouble{}, map[string]*trouble{}
	h.first, h.checked, h.wrong, h.events = map[string]time.Time{}, map[string]int{}, nil, nil
	if h.wish == nil {
		h.wish = &wish{}
	}
	report, err := h.applyAs(context.Background(), apply.Options{
		Scroll: s, Lineage: "law", Now: func() time.Time { return h.now }, Tell: h.told,
	}, func(op, path string) error {
		if op == "exec" || op == "ran" || strings.HasPrefix(op, "journal") {
			return nil
		}
		if tr := h.struck(op, path); tr != nil {
			return h.fail(tr, reconcilers.Command{})
		}
		return nil
	})
	if len(h.wrong) > 0 {
		t.Fatalf("%s", strings.Join(h.wrong, "\n"))
	}
	h.check(t)
	return report, err
}

// settle applies a wish with nothing in its way.
func (h *failHost) settle(t tester, w *wish, s *scrolls.Scroll) *apply.Report {
	report, err := h.run(t, w, s)
	if err != nil || report.Partial() {
		t.Fatalf("with nothing in its way: %v %+v", err, failures(report))
	}
	return report
}

// look is the plan of a scroll that is not applied.
func (h *failHost) look(t tester, s *scrolls.Scroll) *plan.Plan {
	report, err := h.applyAs(context.Background(), apply.Options{
		Scroll: s, Lineage: "law", Approve: func(*plan.Plan) (bool, error) { return false, nil },
	}, nil)
	if err != nil && !errors.Is(err, apply.ErrDeclined) {
		t.Fatal(err)
	}
	return report.Plan
}

// print is the host: every path but dpkg's and apt's own, every package and every unit
// that runs. The lines of the file that leaves share are sorted.
func (h *failHost) print(t tester) map[string]string {
	prints := h.fingerprint(t, false)
	maps.DeleteFunc(prints, func(name, _ string) bool { return strings.HasPrefix(name, "/var") || strings.HasPrefix(name, "/run") })
	hosts, err := os.ReadFile(h.root + "/etc/hosts")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(hosts), "\n")
	slices.Sort(lines)
	prints["/etc/hosts"] = fmt.Sprintf("%q", lines)
	packages, err := h.m.Print()
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range packages {
		if strings.HasPrefix(name, "package ") {
			prints[name] = text
		}
	}
	for line := range strings.SplitSeq(h.sd.Print(), "\n") {
		if f := strings.Fields(line); f[0] == "unit" {
			prints[f[0]+" "+f[1]] = strings.Join(f[2:], " ")
		}
	}
	return prints
}

// inForceNow are the keys in force, with their content and their leaf.
func (h *failHost) inForceNow(t tester) map[string]string {
	keys := map[string]string{}
	for _, a := range h.snapshot(t).Applied {
		keys[string(a.Key)] = fmt.Sprintf("%s in %s", reconcilers.CID(a.Glyph), a.Leaf)
	}
	return keys
}

// lastRevision is the newest revision.
func (h *failHost) lastRevision(t tester) *state.Revision {
	r, err := state.Read(filepath.Join(h.dir, "journal", "planroom.db"), state.Options{Root: h.root})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	all, err := r.Revisions("law")
	if err != nil || len(all) == 0 {
		t.Fatalf("%d revisions: %v", len(all), err)
	}
	return all[len(all)-1]
}
