package apply_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golem/apply"
	"golem/plan"
	"golem/reconcilers"
	"golem/scrolls"
	"golem/state"
)

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
	says(t, text(t, r), "start fail.service", "exit status 1", "last in the log of fail.service:\n               fake: cannot bind to port 80",
		"web.service     stopped, and started again: units was rolled back", "plain.service   started, and stopped again: units was rolled back",
		"fail.service    start: its step failed; it is as it was before this run")
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

// A unit's file that was written after the unit was started still goes after it: the unit
// is stopped the way it was begun.
func TestAUnitIsStoppedBeforeItsFileGoes(t *testing.T) {
	h := newUnitHost(t)
	own := func(text string) *scrolls.Glyph {
		return fileGlyph("/etc/systemd/system/own.service", "[Service]\nExecStart=/fake/run\n[Install]\nWantedBy=own.target\n#"+text)
	}
	was := h.Print()
	h.declare(own("one"), service("own", "state", "running", "enabled", true), service("web", "enabled", true))
	h.declare(own("two"), service("own", "state", "running", "enabled", true), service("web", "enabled", true))
	r := h.declare()
	h.same("undeclared", was)
	var order []string
	for _, c := range r.Plan.Changes() {
		order = append(order, string(c.Key))
	}
	if want := []string{"service:web.service", "service:own.service", "file:/etc/systemd/system/own.service"}; !slices.Equal(order, want) {
		t.Errorf("they go in the order %q", order)
	}
}

func TestAUnitBelongsToOneLineage(t *testing.T) {
	h := newUnitHost(t)
	h.ctl("enable", "web.service")
	h.declare(service("web", "state", "running"))
	other := scrollOf(leafOf("there", service("www.service", "enabled", true)))
	other.Name = "other"
	_, err := h.apply(other, "other")
	if err == nil {
		t.Fatal("a unit is in two lineages")
	}
	says(t, err.Error(), "Unit belongs to another lineage", `service:web.service in the lineage "run"`)
}
