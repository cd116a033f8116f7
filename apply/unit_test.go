package apply_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golem/apply"
	"golem/plan"
	"golem/reconcilers"
	"golem/reconcilers/fake"
	"golem/scrolls"
	"golem/state"
)

// A unitHost is a lawHost that a fake systemd runs.
type unitHost struct {
	*lawHost
	*fake.Systemd
	t tester
}

const libUnits = "/usr/lib/systemd/system/"

// unitFiles are the units of every unitHost.
var unitFiles = map[string]string{
	"web.service":    "[Service]\nType=notify\nExecStart=/fake/run\nExecReload=/fake/reload\n[Install]\nWantedBy=multi-user.target\nAlias=www.service\n",
	"web.socket":     "[Socket]\nListenStream=80\n[Install]\nWantedBy=sockets.target\n",
	"docker.service": "[Service]\nType=notify\nExecStart=/fake/run\nExecReload=/fake/reload\n[Install]\nWantedBy=multi-user.target\n",
	"filter.service": "[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/fake/run\nExecReload=/fake/reload\n[Install]\nWantedBy=sysinit.target\n",
	"needs.service":  "[Unit]\nRequires=docker.service\n[Service]\nExecStart=/fake/run\n",
	"once.service":   "[Service]\nType=oneshot\nExecStart=/fake/run\n",
	"plain.service":  "[Service]\nExecStart=/fake/run\n",
	"fail.service":   "[Service]\nType=forking\nExecStart=/fake/fail\n",
	"false.service":  "[Service]\nExecStart=/fake/fail\n",
	"dies.service":   "[Service]\nExecStart=/fake/dies\n",
	"ends.service":   "[Service]\nExecStart=/fake/ends\n",
	"loops.service":  "[Service]\nExecStart=/fake/dies\nRestart=always\n",
	"stuck.service":  "[Service]\nExecStart=/fake/stuck\n",
	"waker.socket":   "[Socket]\nListenStream=81\n[X-Hidden]\nService=web.service\n",
	"also.service":   "[Service]\nExecStart=/fake/run\n[Install]\nAlso=web.socket\n",
}

func newUnitHost(t cleaner) *unitHost {
	l := newLawHost(t)
	t.Cleanup(l.remove)
	h := unitHostAt(l)
	h.t = t
	err := errors.Join(h.Boot(), os.MkdirAll(h.root+"/etc/systemd/system", 0o755))
	for name, text := range unitFiles {
		err = errors.Join(err, h.Write(libUnits+name, text))
	}
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// unitHostAt lets a fake systemd run a host, with what it remembers of an earlier
// process.
func unitHostAt(l *lawHost) *unitHost {
	h := &unitHost{lawHost: l, Systemd: &fake.Systemd{Root: l.root, State: filepath.Join(l.dir, "systemd")}}
	l.arrange = func(host *reconcilers.Host) { runBySystemd(host, h.Systemd) }
	return h
}

// runBySystemd lets a fake systemd answer for a host.
func runBySystemd(host *reconcilers.Host, sd *fake.Systemd) {
	host.Booted = true
	host.Exec = func(_ context.Context, c reconcilers.Command) (reconcilers.Output, error) {
		a, ok := sd.Run(c.Argv...)
		out := reconcilers.Output{Stdout: []byte(a.Out), Stderr: []byte(a.Err)}
		if !ok {
			return out, fmt.Errorf("run %s: no such program", c.Argv[0])
		}
		if a.Code != 0 {
			return out, &reconcilers.CommandError{Argv: c.Argv, Code: a.Code, Said: a.Err, Err: fmt.Errorf("exit status %d", a.Code)}
		}
		return out, nil
	}
	host.Sleep = func(_ context.Context, d time.Duration) error { sd.Sleep(d); return nil }
}

// A cleaner is a tester that cleans up behind itself.
type cleaner interface {
	tester
	Cleanup(do func())
}

// ctl runs systemctl as somebody else does.
func (h *unitHost) ctl(args ...string) {
	if a, _ := h.Run(append([]string{"systemctl"}, args...)...); a.Code != 0 {
		h.t.Fatalf("systemctl %v: %s", args, a.Err)
	}
}

// declare applies service glyphs in one leaf, which must settle.
func (h *unitHost) declare(glyphs ...*scrolls.Glyph) *apply.Report {
	return h.mustApply(h.t, scrollOf(leafOf("units", glyphs...)))
}

func service(unit string, attrs ...any) *scrolls.Glyph {
	a := scrolls.Attrs{"unit": unit}
	for i := 0; i+1 < len(attrs); i += 2 {
		a[attrs[i].(string)] = attrs[i+1]
	}
	return glyph("service", a)
}

func (h *unitHost) is(unit, want string) {
	if got := h.Active(unit); got != want {
		h.t.Fatalf("%s is %s, want %s", unit, got, want)
	}
}

func (h *unitHost) same(when, want string) {
	if got := h.Print(); got != want {
		h.t.Fatalf("%s:\nwas\n%s\nis\n%s", when, want, got)
	}
}

// text is a report as a person reads it.
func text(t tester, r *apply.Report) string {
	b := &strings.Builder{}
	if err := r.Text(plan.NewPrinter(b, plan.Style{})); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func planText(t tester, p *plan.Plan) string {
	b := &strings.Builder{}
	if err := p.Text(plan.NewPrinter(b, plan.Style{})); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// says fails unless a text holds others.
func says(t testing.TB, text string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if !strings.Contains(text, want) {
			t.Errorf("it does not say %q:\n%s", want, text)
		}
	}
}

func TestAUnitFoundRunningIsLeftRunning(t *testing.T) {
	h := newUnitHost(t)
	h.ctl("start", "docker.service")
	was := h.Print()
	h.declare(service("docker", "state", "running", "reload_on", []any{"file:/etc/daemon.json"}))
	r := h.declare()
	h.same("undeclared", was)
	says(t, planText(t, r.Plan), "forget   docker.service  it was running before golem; left as it is")
	says(t, text(t, r), "docker.service  forgotten: it was running before golem; left as it is")
	if h.Called("stop", "docker.service")+h.Called("restart", "docker.service") != 0 {
		t.Error("it was stopped on the way")
	}
}

func TestAUnitThatGolemStartedIsStoppedAgain(t *testing.T) {
	h := newUnitHost(t)
	h.ctl("start", "dies.service")
	h.Sleep(2 * time.Second)
	h.is("dies.service", "failed")
	if err := h.Write(libUnits+"dies.service", "[Service]\nExecStart=/fake/run\n"); err != nil {
		t.Fatal(err)
	}
	was := h.Print()
	h.declare(service("filter.service", "state", "running", "enabled", true), service("dies", "state", "running"))
	h.is("filter.service", "active")
	h.is("dies.service", "active")
	r := h.declare()
	h.is("dies.service", "inactive") // a failure cannot be given back, and is no wish of anybody's
	h.same("undeclared", strings.ReplaceAll(was, "\nunit dies.service failed failed", ""))
	says(t, planText(t, r.Plan), "stop     filter.service  started by golem in revision 1", "stop     dies.service    started by golem in revision 1", "stopped again, as golem found it")
	says(t, text(t, r), "filter.service  restored: stopped again, as golem found it; disabled again")
}

func TestAUnitThatGolemStoppedIsNotStartedOnTheWayOut(t *testing.T) {
	h := newUnitHost(t)
	h.ctl("start", "web.socket")
	h.ctl("start", "web.service")
	was := h.Print()
	r := h.declare(service("web", "state", "stopped"))
	h.is("web.service", "inactive")
	h.is("web.socket", "inactive")
	says(t, planText(t, r.Plan), "stop     web.socket   it would start web.service again", "stop     web.service  declared stopped")
	r = h.declare()
	h.is("web.service", "inactive")
	says(t, planText(t, r.Plan), "golem stopped it; nothing is started on the way out")

	// What was found is still known when the unit is declared again.
	r = h.declare(service("web", "state", "running"))
	h.same("declared running again", was)
	says(t, planText(t, r.Plan), "golem stopped it with web.service")
	r = h.declare()
	h.same("undeclared", was)
	says(t, text(t, r), "web.service  forgotten: it was running before golem; left as it is")
}

func TestAUnitStartedBySomebodySinceIsFoundAnew(t *testing.T) {
	h := newUnitHost(t)
	h.ctl("start", "web.service")
	h.declare(service("web", "state", "stopped"))
	h.declare()
	h.ctl("start", "web.service")
	h.declare(service("docker", "state", "running")) // forgets what it knew of web.service
	h.ctl("stop", "web.service")
	h.declare(service("web", "state", "running"))
	h.declare()
	h.is("web.service", "inactive")
}

func TestEnablementAndRunningAreTwoFacts(t *testing.T) {
	h := newUnitHost(t)
	h.ctl("start", "web.service")
	was := h.Print()
	h.declare(service("web", "state", "running", "enabled", true))
	r := h.declare()
	h.same("undeclared", was)
	says(t, planText(t, r.Plan), "restore  web.service  it was running before golem; left as it is; disabled again, as golem found it")
	if h.Called("stop", "web.service") != 0 {
		t.Error("it was stopped on the way")
	}
}

func TestReplacesDoNotStopAUnitThatStaysDeclaredRunning(t *testing.T) {
	h := newUnitHost(t)
	was := h.Print()
	for i := range 10 {
		attrs := []any{"state", "running"}
		if i%2 == 0 {
			attrs = append(attrs, "enabled", i%4 == 0)
		}
		h.declare(service("web", attrs...))
		h.is("web.service", "active")
	}
	if n := h.Called("stop", "web.service") + h.Called("restart", "web.service"); n != 0 {
		t.Errorf("it was stopped %d times on the way", n)
	}
	h.declare()
	h.same("undeclared", was)
}

func TestRenamedRegroupedAndMovedIsNoStep(t *testing.T) {
	h := newUnitHost(t)
	h.declare(service("web", "state", "running"))
	g := service("web.service", "state", "running")
	g.Label = "another"
	if r := h.mustApply(t, scrollOf(leafOf("moved/deep", g))); len(r.Plan.Changes()) != 0 {
		t.Errorf("it changes: %+v", r.Plan.Changes())
	}
	// Another name of the same unit is another key, and still the same unit.
	h.ctl("enable", "web.service")
	r := h.mustApply(t, scrollOf(leafOf("third", service("www.service", "state", "running"))))
	if h.Called("stop", "web.service") != 0 {
		t.Errorf("it was stopped:\n%s", planText(t, r.Plan))
	}
	says(t, planText(t, r.Plan), "www.service is web.service here")
}

func TestARollbackStartsAgainWhatTheRunStopped(t *testing.T) {
	h := newUnitHost(t)
	for _, unit := range []string{"web.socket", "web.service", "docker.service", "needs.service"} {
		h.ctl("start", unit)
	}
	was := h.Print()
	r, err := h.apply(scrollOf(leafOf("units", service("web", "state", "stopped", "enabled", true), service("docker", "state", "stopped"),
		service("plain", "state", "running"), service("fail", "state", "running"))), "run")
	if err != nil || r.Outcome != "rolled_back" {
		t.Fatalf("%v %+v", err, r)
	}
	h.same("rolled back", was)
	says(t, planText(t, r.Plan), "stop     needs.service   it needs docker.service, and stops with it")
	says(t, text(t, r), "start fail.service", "exit status 1", "its last lines:\n               fake: cannot bind to port 80")
}

func TestWhatStartsAndDiesIsNotStarted(t *testing.T) {
	for unit, why := range map[string]string{
		"dies": "it failed", "false": "it failed", "ends": "it ended by itself", "loops": "it ends again and again",
	} {
		t.Run(unit, func(t *testing.T) {
			h := newUnitHost(t)
			was := h.Print()
			r, err := h.apply(scrollOf(leafOf("units", service(unit, "state", "running"))), "run")
			if err != nil || r.Outcome != "rolled_back" {
				t.Fatalf("%v %+v", err, r)
			}
			says(t, text(t, r), "start "+unit+".service: "+why)
			h.same("rolled back", was)
		})
	}
}

func TestAUnitWithoutStateIsOnlyReloadedWhileItRuns(t *testing.T) {
	h := newUnitHost(t)
	h.ctl("start", "docker.service")
	conf := func(text string) *scrolls.Glyph { return fileGlyph("/etc/daemon.json", text) }
	docker := service("docker", "reload_on", []any{"file:/etc/daemon.json"})
	web := service("web", "reload_on", []any{"file:/etc/daemon.json"})
	r := h.declare(conf("1"), docker, web)
	if h.Called("reload", "docker.service") != 1 || h.Called("reload", "web.service") != 0 {
		t.Errorf("reloads: docker %d, web %d", h.Called("reload", "docker.service"), h.Called("reload", "web.service"))
	}
	says(t, planText(t, r.Plan), "reload   docker.service  file:/etc/daemon.json changes")
	says(t, text(t, r), "docker.service  reloaded: file:/etc/daemon.json changes")
	was := h.Print()
	r = h.declare()
	h.same("undeclared", was)
	says(t, planText(t, r.Plan), "forget   docker.service  golem only reloads it; left as it is")
}

func TestATriggerStartsAFailedUnitAnew(t *testing.T) {
	h := newUnitHost(t)
	h.ctl("start", "dies.service")
	h.Sleep(5 * time.Second)
	h.is("dies.service", "failed")
	h.declare(
		fileGlyph("/etc/systemd/system/dies.service.d/run.conf", "[Service]\nExecStart=/fake/run\n"),
		service("dies", "restart_on", []any{"file:/etc/systemd/**"}),
	)
	h.is("dies.service", "active")
}

func TestAUnitOfTheSameScrollIsStartedAndGoes(t *testing.T) {
	h := newUnitHost(t)
	was := h.Print()
	r := h.declare(
		fileGlyph("/etc/systemd/system/own.service", "[Service]\nExecStart=/fake/run\n[Install]\nWantedBy=own.target\n"),
		service("own", "state", "running", "enabled", true, "restart_on", []any{"file:/etc/systemd/system/own.service"}),
	)
	h.is("own.service", "active")
	says(t, planText(t, r.Plan), "comes with file:/etc/systemd/system/own.service")
	if h.Called("restart", "own.service") != 0 {
		t.Error("what was just started is restarted")
	}
	h.declare(
		fileGlyph("/etc/systemd/system/own.service", "[Service]\nExecStart=/fake/stuck\n[Install]\nWantedBy=own.target\n"),
		service("own", "state", "running", "enabled", true, "restart_on", []any{"file:/etc/systemd/system/own.service"}),
	)
	if h.Called("restart", "own.service") != 1 || h.Called("daemon-reload", "") != 0 {
		t.Errorf("restarts: %d", h.Called("restart", "own.service"))
	}
	h.declare()
	h.same("undeclared", was)
}

func TestWhatDriftsIsRepaired(t *testing.T) {
	h := newUnitHost(t)
	web := service("web", "state", "running", "enabled", true)
	plain := service("plain", "masked", true)
	stopped := service("docker", "state", "stopped")
	h.declare(web, plain, stopped)
	was := h.Print()
	h.ctl("stop", "web.service")
	h.ctl("disable", "web.service")
	h.ctl("unmask", "plain.service")
	h.ctl("start", "docker.service")
	r := h.declare(web, plain, stopped)
	h.same("repaired", was)
	says(t, planText(t, r.Plan), "drifted: it is inactive, it is not enabled any more", "drifted: its mask is gone", "drifted: it is running")
	if r := h.declare(web, plain, stopped); !r.Plan.Empty() {
		t.Errorf("a second time there is something to do:\n%s", planText(t, r.Plan))
	}
}

func TestUnitsThatCannotBePlanned(t *testing.T) {
	h := newUnitHost(t)
	h.ctl("mask", "docker.service")
	h.ctl("start", "web.socket")
	if err := h.Write("/etc/systemd/system/local.service", "[Service]\nExecStart=/fake/run\n"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		glyphs []*scrolls.Glyph
		says   []string
	}{
		{[]*scrolls.Glyph{service("no-such", "enabled", true)}, []string{"knows no unit no-such.service"}},
		{[]*scrolls.Glyph{service("plain", "enabled", true)}, []string{"plain.service is static: nothing to enable; start it, or let another unit depend on it"}},
		{[]*scrolls.Glyph{service("also", "enabled", true)}, []string{"indirect"}},
		{[]*scrolls.Glyph{service("docker", "state", "running")}, []string{"masked", "write masked = false"}},
		{[]*scrolls.Glyph{service("docker", "enabled", true)}, []string{"masked", "write masked = false"}},
		{[]*scrolls.Glyph{service("local", "masked", true)}, []string{"/etc/systemd/system/local.service", "where a file is"}},
		{[]*scrolls.Glyph{service("plain", "reload_on", []any{"file:/x"})}, []string{"write restart_on instead"}},
		{[]*scrolls.Glyph{service("once", "state", "running")}, []string{"oneshot without RemainAfterExit"}},
		{[]*scrolls.Glyph{service("web", "state", "stopped"), service("web.socket", "state", "running")}, []string{"web.socket is declared running, and starts it again"}},
		{[]*scrolls.Glyph{fileGlyph("/etc/systemd/system/own.service", "")}, nil},
	} {
		_, err := h.apply(scrollOf(leafOf("units", c.glyphs...)), "run")
		switch {
		case c.says == nil && err != nil:
			t.Errorf("%v: %v", c.glyphs[0].Key, err)
		case c.says != nil && err == nil:
			t.Errorf("%s: it is planned", c.glyphs[0].Key)
		case err != nil:
			says(t, err.Error(), c.says...)
		}
	}
	h.ctl("enable", "web.service")
	if _, err := h.apply(scrollOf(leafOf("units", service("web", "enabled", true), service("www.service", "enabled", true))), "run"); err == nil || !strings.Contains(err.Error(), "are both web.service") {
		t.Errorf("two names of one unit: %v", err)
	}
	h.declare()
	if r := h.declare(service("plain", "enabled", false), service("once", "enabled", false)); slices.ContainsFunc(r.Plan.Changes(), func(c plan.Told) bool { return c.Effect != "record" }) {
		t.Errorf("disabling what is static changes something:\n%s", planText(t, r.Plan))
	}
}

func TestAMaskThatDidNotHappenIsAFailure(t *testing.T) {
	h := newUnitHost(t)
	h.Deaf = []string{"mask"}
	r, err := h.apply(scrollOf(leafOf("units", service("plain", "masked", true))), "run")
	if err != nil || r.Outcome != "rolled_back" {
		t.Fatalf("%v %+v", err, r)
	}
	says(t, text(t, r), "systemd said that it is done, but the unit is static")
}

func TestAServiceThatSomethingWakesAgainIsAFailure(t *testing.T) {
	h := newUnitHost(t)
	h.ctl("start", "web.service")
	h.ctl("start", "waker.socket")
	h.Connect("waker.socket")
	was := h.Print()
	// Nothing tells that this socket is about web.service.
	r, err := h.apply(scrollOf(leafOf("units", service("web", "state", "stopped"))), "run")
	if err != nil || r.Outcome != "rolled_back" {
		t.Fatalf("%v %+v", err, r)
	}
	says(t, text(t, r), "the unit is active; something may have started it again")
	h.same("rolled back", was)
}

func TestNothingIsKnownOfItBeforeGolem(t *testing.T) {
	h := newUnitHost(t)
	h.declare(service("web", "state", "running", "enabled", true))
	host, err := reconcilers.OpenHost(h.root)
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close()
	journal, err := state.Open(filepath.Join(h.dir, "journal", "planroom.db"), state.Options{Root: h.root, LockTimeout: 10 * time.Second})
	if err == nil {
		_, err = apply.Forget(context.Background(), apply.Options{Journal: journal, Host: host}, "service:web.service", true)
		err = errors.Join(err, journal.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	was := h.Print()
	r := h.declare()
	h.same("undeclared", was)
	says(t, planText(t, r.Plan), "nothing is known of it before golem; left as it is")
}

func TestAUnitBetweenTwoStatesIsWaitedFor(t *testing.T) {
	h := newUnitHost(t)
	if err := h.Write(libUnits+"slow.service", "[Service]\nType=notify\nExecStart=/fake/slow\n"); err != nil {
		t.Fatal(err)
	}
	h.ctl("--no-block", "start", "slow.service")
	h.is("slow.service", "activating")
	h.declare(service("slow", "state", "running")) // it is up after a few seconds
	h.is("slow.service", "active")
	if n := h.Called("start", "slow.service"); n != 1 {
		t.Errorf("it was started %d times", n)
	}
	if err := h.Write(libUnits+"hangs.service", "[Service]\nType=notify\nExecStart=/fake/hangs\n"); err != nil {
		t.Fatal(err)
	}
	h.ctl("--no-block", "start", "hangs.service")
	_, err := h.apply(scrollOf(leafOf("units", service("hangs", "state", "running"))), "run")
	if err == nil {
		t.Fatal("a unit that never gets ready is taken for one that runs")
	}
	says(t, err.Error(), "hangs.service is activating", "did not settle in 10s")
}

func TestAServiceNeedsASystemThatRuns(t *testing.T) {
	l := newLawHost(t)
	t.Cleanup(l.remove)
	_, err := l.apply(scrollOf(leafOf("units", service("web", "state", "running"))), "run")
	if err == nil {
		t.Fatal("a file tree runs a unit")
	}
	says(t, err.Error(), "Service needs a live host", "Under --root golem changes a file tree and runs nothing in it")
	h := newUnitHost(t)
	if err := os.RemoveAll(h.root + "/run/systemd"); err != nil {
		t.Fatal(err)
	}
	if _, err = h.apply(scrollOf(leafOf("units", service("web", "state", "running"))), "run"); err == nil {
		t.Fatal("without systemd a unit runs")
	}
	says(t, err.Error(), "This host is not run by systemd")
}
