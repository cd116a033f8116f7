package apply_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golem/apply"
	"golem/plan"
	"golem/reconcilers"
	"golem/reconcilers/fake"
	"golem/scrolls"
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
		if strings.HasSuffix(c.Argv[0], ".golem") || c.Argv[0] == "test" { // the pinned golem, and what accepts a new file
			return reconcilers.Output{}, nil
		}
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
