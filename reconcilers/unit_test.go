package reconcilers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"golem/reconcilers/fake"
	"golem/scrolls"
	"golem/state"
)

// systemdHost lets a fake systemd answer for a host.
func systemdHost(h *Host, sd *fake.Systemd) {
	h.Booted = true
	h.Exec = func(_ context.Context, c Command) (Output, error) {
		a, ok := sd.Run(c.Argv...)
		out := Output{Stdout: []byte(a.Out), Stderr: []byte(a.Err)}
		if !ok {
			return out, fmt.Errorf("run %s: no such program", c.Argv[0])
		}
		if a.Code != 0 {
			return out, &CommandError{Argv: c.Argv, Code: a.Code, Said: a.Err, Err: fmt.Errorf("exit status %d", a.Code)}
		}
		return out, nil
	}
	h.Sleep = func(_ context.Context, d time.Duration) error { sd.Sleep(d); return nil }
}

// newSystemd makes a tree one that a fake systemd runs.
func newSystemd(root string) (*fake.Systemd, error) {
	sd := &fake.Systemd{Root: root}
	return sd, errors.Join(sd.Boot(), os.MkdirAll(root+"/etc/systemd/system", 0o755))
}

const (
	webUnit = "[Unit]\nWants=helper.service none.service\n[Service]\nExecStart=/fake/run\nExecReload=/fake/reload\n[Install]\nWantedBy=multi-user.target\nAlias=www.service\nAlso=web-extra.timer\n"
	webSock = "[Socket]\nListenStream=80\n[Install]\nWantedBy=sockets.target\n"
	webTime = "[Timer]\nOnCalendar=daily\nUnit=extra.service\n[Install]\nWantedBy=timers.target\n"
)

// drawUnits draws what was there before: web.service in some state, with a socket and
// with a timer that is enabled with it, and units beside it.
func (b *bench) drawUnits() {
	sd, err := newSystemd(b.root)
	b.systemd = sd
	must := func(err error) {
		if err != nil {
			b.t.Fatal(err)
		}
	}
	must(err)
	const lib = "/usr/lib/systemd/system/"
	for name, text := range map[string]string{
		"web.service": webUnit, "web.socket": webSock, "web-extra.timer": webTime,
		"extra.service": "[Service]\nExecStart=/fake/run\n", "helper.service": "[Unit]\nRequires=deep.service\n[Service]\nExecStart=/fake/run\n",
		"deep.service": "[Service]\nExecStart=/fake/run\n", "beside.service": strings.NewReplacer("web", "other", "www", "vvv").Replace(webUnit),
		"needs.service": "[Unit]\nRequires=web.service\n[Service]\nExecStart=/fake/run\n",
	} {
		must(sd.Write(lib+name, text))
	}
	must(os.Symlink("web.service", b.root+lib+"web-too.service"))
	run := func(when string, argv ...string) {
		if rapid.Bool().Draw(b.t, when) {
			if a, _ := sd.Run(append([]string{"systemctl"}, argv...)...); a.Code != 0 {
				b.t.Fatalf("%v: %s", argv, a.Err)
			}
		}
	}
	run("beside", "enable", "beside.service")
	run("socket", "start", "web.socket")
	run("helper", "start", "helper.service")
	run("running", "start", "web.service")
	run("helper off", "stop", "helper.service")
	run("needed", "start", "needs.service")
	run("enabled", "enable", "web.service")
	run("timer off", "disable", "web-extra.timer")
	run("enabled at run time", "enable", "--runtime", "web.service")
	run("masked", "mask", "web.service")
	run("masked at run time", "mask", "--runtime", "web.service")
}

func (b *bench) bootUnits(h *Host) { systemdHost(h, b.systemd) }

// sampleService draws a wish that can be granted whatever web.service is found in, and
// that undeclaring gives back whole: a unit that golem stops is not started again.
func sampleService(t *rapid.T) scrolls.Attrs {
	a := scrolls.Attrs{"unit": rapid.SampledFrom([]string{"web", "web.service", "web-too.service"}).Draw(t, "unit")}
	switch rapid.SampledFrom([]string{"run", "mask", "enable", "reload"}).Draw(t, "wish") {
	case "run":
		a["state"], a["masked"] = "running", false
		if rapid.Bool().Draw(t, "and enable") {
			a["enabled"] = rapid.Bool().Draw(t, "enabled")
		}
	case "mask":
		a["masked"] = true
		if rapid.Bool().Draw(t, "and disable") {
			a["enabled"] = false
		}
	case "enable":
		a["enabled"], a["masked"] = rapid.Bool().Draw(t, "enabled"), false
	case "reload":
		a["restart_on"] = []any{"file:/etc/web/**"}
	}
	return a
}

// sampleAny draws a wish that golem's stopping of units may be part of.
func sampleAny(t *rapid.T) scrolls.Attrs {
	if rapid.Bool().Draw(t, "stop it") {
		a := scrolls.Attrs{"unit": "web", "state": "stopped"}
		if rapid.Bool().Draw(t, "and mask") {
			a["masked"], a["enabled"] = true, false
		}
		return a
	}
	return sampleService(t)
}

// glyphOf makes a glyph of attributes that must be right.
func glyphOf(t *rapid.T, attrs scrolls.Attrs) *scrolls.Glyph {
	if problems := serviceKind.Check(attrs); len(problems) > 0 {
		t.Fatalf("%v: %v", attrs, problems)
	}
	return &scrolls.Glyph{Kind: "service", Version: 1, Attrs: attrs, Key: scrolls.MakeKey("service", serviceKind.Identity(attrs)...)}
}

// intentOf is a step as the journal has it when the host is not touched yet.
func intentOf(t *rapid.T, s *state.Step) *state.Step {
	data, err := json.Marshal(s)
	own := &state.Step{}
	if err == nil {
		err = json.Unmarshal(data, own)
	}
	if err != nil {
		t.Fatal(err)
	}
	return own
}

var errKilled = errors.New("killed")

// killAt lets the host fail at its n-th change, and at every one after it.
func (b *bench) killAt(n int) {
	calls := 0
	b.w.Host.Fault = func(string, string) error {
		if calls++; calls >= n {
			return errKilled
		}
		return nil
	}
}

// Whatever a unit was, whatever is wished, and wherever golem dies on the way there and
// on the way back: in the end the unit is what it was before the step.
func TestAUnitsStepIsTakenBackFromAnyPoint(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := newBench(t, serviceKind)
		defer b.close()
		b.g = glyphOf(t, sampleAny(t))
		turn := b.turn(nil, false)
		if rapid.Bool().Draw(t, "second step") {
			b.enact(turn)
			drop := rapid.Bool().Draw(t, "drop")
			if !drop {
				b.g = glyphOf(t, sampleAny(t))
			}
			if turn = b.turn(turn.Step.After, drop); turn.Step == nil {
				return
			}
		}
		was := b.print()
		intent := intentOf(t, turn.Step)
		b.killAt(rapid.IntRange(1, 12).Draw(t, "killed at"))
		_, err := b.rec.Enact(context.Background(), b.w, b.store, []*Turn{turn})
		if err != nil && !errors.Is(err, errKilled) {
			t.Fatal(err)
		}
		b.w.forget()
		b.killAt(rapid.IntRange(1, 12).Draw(t, "killed on the way back at"))
		if err := b.rec.Undo(context.Background(), b.w, b.store, intent); err != nil && !errors.Is(err, errKilled) {
			t.Fatal(err)
		}
		b.w.Host.Fault = nil
		b.w.forget()
		if err := b.rec.Undo(context.Background(), b.w, b.store, intent); err != nil {
			t.Fatal(err)
		}
		b.same("taken back", was)
		if b.w.Host.unitFiles {
			t.Fatal("systemd was not told to read its files again")
		}
	})
}
