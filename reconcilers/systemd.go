package reconcilers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golem/scrolls"
)

// A unit is what systemd says of one unit, all of it at one instant.
type unit struct {
	Name string // as it was asked for
	ID   string // its real name; Name where systemd knows no such unit
	// Names are the real name and every alias that is loaded.
	Names []string
	Load  string // loaded, masked, not-found, bad-setting, error
	// Active and Sub are its state: active, inactive, failed, activating, …
	Active, Sub string
	Type        string // of a service: simple, oneshot, …
	// File is the state of its file, read from disk: enabled, disabled, static, masked, …
	File                 string
	Preset               string
	Fragment, Source     string // the file it is from, and what a generator made that from
	DropIns              []string
	Result               string
	ExitCode, ExitStatus int // how its main process ended (si_code, and status or signal)
	Restarts             int
	MainPID              int
	Entered              uint64 // when it last became active: microseconds since boot

	CanReload, CanStart, CanStop bool
	RefuseStart, RefuseStop      bool
	NeedReload                   bool // its file changed since systemd read it
	RemainAfterExit, Transient   bool
	Unmet                        bool // a condition in its file was not met when it was last started

	TriggeredBy, Triggers []string
	// RequiredBy are the units that stop when it stops, and Conflicts those that stop
	// when it starts.
	RequiredBy, Conflicts []string
	// Pulls are the units that are started with it, and PulledBy those it is started with.
	Pulls, PulledBy []string
}

// known says whether there is such a unit, masked ones included.
func (u *unit) known() bool { return u.Load != "not-found" }

// running says whether the unit is up.
func (u *unit) running() bool { return u.Active == "active" || u.Active == "reloading" }

// changing says whether the unit is on its way from one state to another.
func (u *unit) changing() bool {
	return u.Active == "activating" || u.Active == "deactivating" || u.Active == "reloading" || u.Active == "maintenance"
}

// kind is the unit's type by its name's suffix: service, socket, …
func (u *unit) kind() string { return unitSuffix(u.ID) }

// unitProperties are what is asked of every unit.
var unitProperties = []string{
	"Id", "Names", "LoadState", "ActiveState", "SubState", "Type", "UnitFileState", "UnitFilePreset",
	"FragmentPath", "SourcePath", "DropInPaths", "CanReload", "CanStart", "CanStop", "NeedDaemonReload",
	"TriggeredBy", "Triggers", "RequiredBy", "RequisiteOf", "BoundBy", "ConsistsOf", "WantedBy", "UpheldBy", "Conflicts", "ConflictedBy",
	"Requires", "Wants", "BindsTo", "Upholds",
	"RemainAfterExit", "ConditionResult", "AssertResult", "Result", "ExecMainCode", "ExecMainStatus", "NRestarts", "MainPID", "Transient",
	"RefuseManualStart", "RefuseManualStop", "ActiveEnterTimestampMonotonic",
}

// readUnit makes a unit of the properties in one block of systemctl show.
func readUnit(name, block string) *unit {
	p := map[string]string{}
	for _, line := range strings.Split(block, "\n") {
		if key, value, ok := strings.Cut(line, "="); ok {
			p[key] = value
		}
	}
	yes := func(key string) bool { return p[key] == "yes" }
	number := func(key string) int { n, _ := strconv.Atoi(p[key]); return n } // "[not set]" is none
	lists := func(keys ...string) []string {
		var all []string
		for _, key := range keys {
			all = append(all, strings.Fields(p[key])...)
		}
		return all
	}
	entered, _ := strconv.ParseUint(p["ActiveEnterTimestampMonotonic"], 10, 64)
	return &unit{
		Name: name, ID: p["Id"], Names: lists("Names"), Load: p["LoadState"], Active: p["ActiveState"], Sub: p["SubState"],
		Type: p["Type"], File: p["UnitFileState"], Preset: p["UnitFilePreset"], Fragment: p["FragmentPath"],
		Source: p["SourcePath"], DropIns: lists("DropInPaths"), Result: p["Result"],
		ExitCode: number("ExecMainCode"), ExitStatus: number("ExecMainStatus"),
		Restarts: number("NRestarts"), MainPID: number("MainPID"), Entered: entered,
		CanReload: yes("CanReload"), CanStart: yes("CanStart"), CanStop: yes("CanStop"), NeedReload: yes("NeedDaemonReload"),
		RefuseStart: yes("RefuseManualStart"), RefuseStop: yes("RefuseManualStop"),
		RemainAfterExit: yes("RemainAfterExit"), Transient: yes("Transient"),
		Unmet:       p["ConditionResult"] == "no" || p["AssertResult"] == "no",
		TriggeredBy: lists("TriggeredBy"), Triggers: lists("Triggers"),
		RequiredBy: lists("RequiredBy", "RequisiteOf", "BoundBy", "ConsistsOf"), Conflicts: lists("Conflicts", "ConflictedBy"),
		Pulls: lists("Requires", "Wants", "BindsTo", "Upholds"), PulledBy: lists("RequiredBy", "WantedBy", "BoundBy", "UpheldBy"),
	}
}

// lookTime bounds a question to systemd; the answer takes milliseconds.
const lookTime = 30 * time.Second

// maxAsked is how many units one question is about.
const maxAsked = 300

// showUnits asks systemd about units, many at a time. The answers stand in the order
// of the names.
func (h *Host) showUnits(ctx context.Context, names []string) ([]*unit, error) {
	var all []*unit
	for len(names) > 0 {
		some := names[:min(len(names), maxAsked)]
		names = names[len(some):]
		argv := append([]string{"systemctl", "show", "--no-pager", "--property=" + strings.Join(unitProperties, ","), "--"}, some...)
		out, err := h.Run(ctx, lookTime, argv...)
		if err != nil {
			return nil, fmt.Errorf("ask systemd about %s: %w", someNames(append([]string(nil), some...)), err)
		}
		blocks := strings.Split(strings.TrimSpace(string(out.Stdout)), "\n\n")
		if len(blocks) != len(some) {
			return nil, fmt.Errorf("ask systemd about %d units: it answered about %d", len(some), len(blocks))
		}
		asked := make([]*unit, len(some))
		for i, name := range some {
			if asked[i] = readUnit(name, blocks[i]); asked[i].ID == "" || asked[i].Active == "" {
				return nil, fmt.Errorf("ask systemd about %s: it did not say its name and state", quote(name))
			}
		}
		if err := h.fileStates(ctx, asked); err != nil {
			return nil, err
		}
		all = append(all, asked...)
	}
	return all, nil
}

// fileStates brings the units' file states up to date: systemd remembers for a loaded
// unit what it was when it last read the files, and links may have come or gone since. It
// is asked again only about units of which the links on the disk say something else.
func (h *Host) fileStates(ctx context.Context, units []*unit) error {
	all, err := h.readLinkage()
	if err != nil {
		return err
	}
	var ask []*unit
	for _, u := range units {
		if (u.Fragment != "" && u.File != "generated" && u.File != "transient" || u.Load == "masked") && !all.agrees(u) {
			ask = append(ask, u)
		}
	}
	if len(ask) == 0 {
		return nil
	}
	states, err := h.isEnabled(ctx, ask...)
	if err != nil {
		return err
	}
	if len(states) == len(ask) {
		for i, u := range ask {
			u.File = states[i]
		}
		return nil
	}
	// One of them has no file any more, at which the question ends: ask one by one.
	for _, u := range ask {
		states, err := h.isEnabled(ctx, u)
		if err != nil {
			return err
		}
		if len(states) == 1 {
			u.File = states[0]
		}
	}
	return nil
}

func (h *Host) isEnabled(ctx context.Context, units ...*unit) ([]string, error) {
	argv := []string{"systemctl", "is-enabled", "--"}
	for _, u := range units {
		argv = append(argv, u.ID)
	}
	out, err := h.Run(ctx, lookTime, argv...)
	var failed *CommandError
	if err != nil && (!errors.As(err, &failed) || failed.Code < 0) {
		return nil, fmt.Errorf("ask systemd what is enabled: %w", err)
	}
	return strings.Fields(string(out.Stdout)), nil // it fails where one is not enabled
}

// A unitDesk is what a world knows of units.
type unitDesk struct {
	mu   sync.Mutex
	seen map[string]*unit // by the name that was asked for, and by the real one
	// links are the links that units have; nil where nobody looked.
	links *linkage
	// fore are states that a recovery will have given back by the time of the run.
	fore map[string]unitState
	// will says of units what the run leaves, where that is another state than seen.
	will map[string]unitWill
	// comes names what brings a unit that is not there yet: "process:backup".
	comes map[string]string
	// goes names the package that brings a unit and that the run takes away.
	goes map[string]scrolls.Key
	// revisions tells of glyphs that go which revision applied them last.
	revisions map[scrolls.Key]int
}

// A unitWill is a unit's state as a run leaves it.
type unitWill struct {
	running bool
}

func (w *World) unitDesk() *unitDesk {
	return keepAt(w, "units", func() *unitDesk {
		return &unitDesk{
			seen: map[string]*unit{}, fore: map[string]unitState{}, will: map[string]unitWill{}, revisions: map[scrolls.Key]int{},
			comes: map[string]string{}, goes: map[string]scrolls.Key{},
		}
	})
}

// units looks units up, and asks systemd once for all that the world has not seen.
func (w *World) units(ctx context.Context, names ...string) (map[string]*unit, error) {
	d := w.unitDesk()
	d.mu.Lock()
	defer d.mu.Unlock()
	var ask []string
	asked := map[string]bool{}
	for _, name := range names {
		if d.seen[name] == nil && !asked[name] {
			ask = append(ask, name)
			asked[name] = true
		}
	}
	if len(ask) > 0 {
		fresh, err := w.Host.showUnits(ctx, ask)
		if err != nil {
			return nil, err
		}
		for _, u := range fresh {
			if u.Load == "masked" { // systemd does not look beneath a mask
				u.Pulls = append(u.Pulls, w.namedIn(u.ID, "Unit", "Requires", "Wants", "BindsTo", "Upholds")...)
				u.Conflicts = append(u.Conflicts, w.namedIn(u.ID, "Unit", "Conflicts")...)
			}
			d.seen[u.Name] = u
			if d.seen[u.ID] == nil {
				d.seen[u.ID] = u
			}
		}
	}
	found := map[string]*unit{}
	for _, name := range names {
		found[name] = d.seen[name]
	}
	return found, nil
}

// unit looks one unit up.
func (w *World) unit(ctx context.Context, name string) (*unit, error) {
	found, err := w.units(ctx, name)
	return found[name], err
}

// forgetUnits drops what the world knows of units, because something was done to one.
func (w *World) forgetUnits() {
	d := w.unitDesk()
	d.mu.Lock()
	defer d.mu.Unlock()
	clear(d.seen)
	d.links = nil
}

// systemctl tells systemd to do something.
func (w *World) systemctl(ctx context.Context, args ...string) error {
	defer w.forgetUnits()
	argv := append([]string{"systemctl", "--no-ask-password"}, args...)
	_, err := w.Host.Do(ctx, Command{Argv: argv, Changes: true, Timeout: w.Timeout})
	return err
}

// systemd says whether the host is run by systemd, so that it can be asked.
func (h *Host) systemd() bool {
	if !h.Live() {
		return false
	}
	d := h.newDirs()
	defer d.close()
	_, err := d.fd("/run/systemd/system")
	return err == nil
}

// unitDirs are where unit files lie, the strongest first.
var unitDirs = []string{
	"/etc/systemd/system", "/run/systemd/system", "/usr/local/lib/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system",
}

// holdsUnits says whether a path is a unit file, a drop-in or a link of systemd's.
func holdsUnits(p string) bool {
	for _, dir := range unitDirs {
		if beneath(p, dir) {
			return true
		}
	}
	return false
}

// StopBeforeFiles puts a leaf's removes of files that units are made of behind its removes of
// units: a unit has to be stopped the way it was begun, though its file may have been written
// anew since. The order is else left as it is.
func StopBeforeFiles(removes []*Turn) {
	if !slices.ContainsFunc(removes, func(t *Turn) bool { return t.Sort == UnitSort }) {
		return
	}
	slices.SortStableFunc(removes, func(a, b *Turn) int {
		switch x, y := a.holdsUnit(), b.holdsUnit(); {
		case x == y:
			return 0
		case y:
			return -1
		}
		return 1
	})
}

// holdsUnit says whether the turn is about a file that a unit is made of.
func (t *Turn) holdsUnit() bool { return t.Sort == PathSort && holdsUnits(t.Resource) }

// rereadUnits has systemd read its files again, if they changed since it did. It must
// run before anything is started or enabled, never before something is stopped: that
// has to end the way it was begun.
func (w *World) rereadUnits(ctx context.Context, units ...*unit) error {
	stale := w.Host.unitFiles
	for _, u := range units {
		stale = stale || u != nil && u.NeedReload
	}
	if !stale {
		return nil
	}
	if !w.Host.systemd() {
		w.Host.unitFiles = false
		return nil
	}
	if err := w.systemctl(ctx, "daemon-reload"); err != nil {
		return fmt.Errorf("have systemd read its units again: %w", err)
	}
	w.Host.unitFiles = false
	return nil
}

// Wait lets time pass.
func (h *Host) Wait(ctx context.Context, d time.Duration) error {
	if h.Sleep != nil {
		return h.Sleep(ctx, d)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
