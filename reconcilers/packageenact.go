package reconcilers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

const (
	downloadTimeout = 10 * time.Minute
	// lockTimeout is how long apt waits for whoever holds dpkg's lock.
	lockTimeout = time.Minute
)

// aptQuiet keeps packages from asking anything, and from restarting what golem did not
// say.
var aptQuiet = []string{
	"DEBIAN_FRONTEND=noninteractive", "DEBIAN_PRIORITY=critical", "DEBCONF_NONINTERACTIVE_SEEN=true",
	"NEEDRESTART_MODE=l", "NEEDRESTART_SUSPEND=1", "APT_LISTCHANGES_FRONTEND=none", "UCF_FORCE_CONFFOLD=1",
}

// apt has apt change the host.
func (w *World) apt(ctx context.Context, args ...string) error {
	wait := w.lockWait()
	argv := aptGet("-o", "Dpkg::Options::=--force-confdef", "-o", "Dpkg::Options::=--force-confold",
		"-o", fmt.Sprintf("DPkg::Lock::Timeout=%d", int(wait.Seconds())))
	out, err := w.Host.Do(ctx, Command{Argv: append(argv, args...), Env: aptQuiet, Changes: true, Timeout: w.Timeout})
	if err == nil {
		return nil
	}
	if locked := w.Host.locked(out); locked != nil {
		return locked
	}
	return aptSaid(out, err)
}

// Enact implements Reconciler: one transaction, and then the marks and holds.
func (packages) Enact(ctx context.Context, w *World, store Store, turns []*Turn) (int, error) {
	defer w.forget()
	want := map[string]Pkg{}
	var effects []pkgEffect
	lead, lift := 0, false
	for i, t := range turns {
		k := t.work.(*pkgWork)
		if k.leads {
			lead, effects, lift = i, k.tx.effects, k.tx.lift
		}
		if k.acts() {
			want[t.Resource] = k.want
		}
	}
	for _, e := range effects {
		want[e.Resource] = e.To
	}
	if len(want) == 0 {
		return -1, nil
	}
	w.Host.forgetNames()
	accounts := w.Host.names()
	err := w.transact(ctx, effects, lift)
	w.Host.forgetNames()
	if err == nil {
		turns[lead].madeAccounts(w.Host.names().newcomers(accounts))
		err = w.mark(ctx, want)
	}
	for _, e := range effects {
		if err == nil {
			err = w.putFiles(ctx, keepWith(store, turns[lead].Step), e.After, func(string, Node) bool { return true })
		}
	}
	if err != nil {
		return culprit(turns, lead, err), err
	}
	return -1, nil
}

// madeAccounts notes in the record of a package's turn which users and groups its
// transaction's scripts made.
func (t *Turn) madeAccounts(made []string) {
	k := t.work.(*pkgWork)
	if len(made) == 0 || t.Step.After == nil {
		return
	}
	k.rec.Accounts = append(k.rec.Accounts, made...)
	t.Step.After = k.after()
}

// culprit is the turn whose package apt complains of; else the one that leads.
func culprit(turns []*Turn, lead int, err error) int {
	for i, t := range turns {
		if strings.Contains(err.Error(), "package "+t.Resource+" ") {
			return i
		}
	}
	return lead
}

// An aptRun is how apt is called for effects: every version spelled out, so that what
// runs is what was shown. Configuration goes in a run of its own, unless nothing else is
// to be done.
type aptRun struct {
	flags, args, purge []string
	brings, mixed      bool
}

// aptRunFor works it out. Package files out of the journal are written out for it.
func aptRunFor(effects []pkgEffect, files *debFiles, lift bool) (*aptRun, error) {
	// What comes for another's recommendation was shown, and is spelled out with the rest.
	run, flags := &aptRun{}, map[string]bool{"--no-remove": true, "--no-install-recommends": true}
	for _, e := range effects {
		if e.Purge {
			run.purge = append(run.purge, e.Resource)
		}
		if !e.From.there() && !e.To.there() {
			continue
		}
		arg, err := e.arg(files)
		if err != nil {
			return nil, err
		}
		run.args = append(run.args, arg)
		run.mixed, run.brings = run.mixed || !e.Purge, run.brings || e.To.there()
		if !e.To.there() {
			delete(flags, "--no-remove")
		} else if e.From.there() && compareVersions(e.To.Version, e.From.Version) < 0 {
			flags["--allow-downgrades"] = true
		}
	}
	if lift {
		flags["--allow-change-held-packages"] = true
	}
	run.flags = slices.Sorted(maps.Keys(flags))
	return run, nil
}

// transact runs apt for effects.
func (w *World) transact(ctx context.Context, effects []pkgEffect, lift bool) error {
	files := &debFiles{h: w.Host, blobs: w.Blobs}
	run, err := aptRunFor(effects, files, lift)
	if err == nil && run.mixed {
		err = w.apt(ctx, slices.Concat(run.flags, []string{"install"}, run.args)...)
	}
	if err == nil && len(run.purge) > 0 {
		flags := slices.DeleteFunc(slices.Clone(run.flags), func(f string) bool { return f != "--allow-change-held-packages" })
		err = w.apt(ctx, slices.Concat(flags, []string{"purge"}, run.purge)...)
	}
	return errors.Join(err, files.remove())
}

// mark makes marks and holds what they are to be, and sees that all is as it is to be.
func (w *World) mark(ctx context.Context, want map[string]Pkg) error {
	v, err := readDpkg(ctx, w.Host)
	if err == nil {
		v, err = w.staying(ctx, v, want)
	}
	if err != nil {
		return err
	}
	todo := map[string][]string{}
	for _, resource := range slices.Sorted(maps.Keys(want)) {
		is, to := v.state(resource), want[resource]
		if is.there() && to.there() && is.Auto != to.Auto {
			verb := map[bool]string{true: "auto", false: "manual"}[to.Auto]
			todo[verb] = append(todo[verb], resource)
		}
		if is.Hold != to.Hold {
			verb := map[bool]string{true: "hold", false: "unhold"}[to.Hold]
			todo[verb] = append(todo[verb], resource)
		}
	}
	for _, verb := range slices.Sorted(maps.Keys(todo)) {
		if err := w.aptMark(ctx, verb, todo[verb]); err != nil {
			return err
		}
	}
	if len(todo) > 0 {
		if v, err = readDpkg(ctx, w.Host); err != nil {
			return err
		}
	}
	for _, resource := range slices.Sorted(maps.Keys(want)) {
		if is := v.state(resource); !is.reached(want[resource]) {
			return fmt.Errorf("apt ended well, but left %s as %s", resource, is.text())
		}
	}
	return nil
}

func (w *World) aptMark(ctx context.Context, verb string, names []string) error {
	argv := append([]string{"apt-mark", "-q", verb}, names...)
	out, err := w.Host.Do(ctx, Command{Argv: argv, Env: aptQuiet, Changes: true, Timeout: w.Timeout})
	if err != nil {
		return aptSaid(out, err)
	}
	return nil
}

// staying takes back that packages which are to be there were told to go the next time:
// apt says so to dpkg before it removes anything, and may die before it does.
func (w *World) staying(ctx context.Context, v *dpkgView, want map[string]Pkg) (*dpkgView, error) {
	var names []string
	for _, resource := range slices.Sorted(maps.Keys(want)) {
		if want[resource].there() && v.state(resource).Status == dpkgLeaving {
			names = append(names, resource)
		}
	}
	if len(names) == 0 {
		return v, nil
	}
	if err := w.aptMark(ctx, "install", names); err != nil {
		return nil, err
	}
	return readDpkg(ctx, w.Host)
}

// reached says that a package is as it is to be. One that left no configuration has none
// to leave.
func (p Pkg) reached(want Pkg) bool {
	if want.Status == dpkgConfigFiles && p.Status == dpkgAbsent {
		return true
	}
	if p.Status != want.Status || p.Hold != want.Hold {
		return false
	}
	return !want.there() || p.Version == want.Version && p.Auto == want.Auto
}

// text is a package's state for people.
func (p Pkg) text() string {
	parts := []string{p.Status}
	if p.Version != "" {
		parts = append(parts, "version "+p.Version)
	}
	if p.there() {
		parts = append(parts, markText(p.Auto))
	}
	if p.Hold {
		parts = append(parts, "on hold")
	}
	return strings.Join(parts, ", ")
}
