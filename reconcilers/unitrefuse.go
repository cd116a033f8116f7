package reconcilers

import (
	"fmt"
	"slices"
	"strings"
)

// refuse says what cannot be done with the unit, whatever state it is in.
func (k *unitWork) refuse() error {
	u := k.u
	if !u.known() {
		return nil // Fit says whether it comes
	}
	wrong := func(attr, summary, format string, args ...any) error {
		return &AttrError{Attr: attr, Summary: summary, Err: fmt.Errorf(format, args...)}
	}
	switch {
	case u.Load == "bad-setting" || u.Load == "error":
		return wrong("unit", "Unit cannot be loaded", "systemd cannot load %s (%s); systemctl status %s says why", u.ID, u.Load, u.ID)
	case k.wish.state != "" && u.changing():
		return wrong("state", "Unit is between two states", "%s is %s (%s) and did not settle in %s; see what it waits for with: systemctl status %s",
			u.ID, u.Active, u.Sub, changeTime, u.ID)
	case k.wish.state == "running" && u.RefuseStart && !u.running():
		return wrong("state", "Unit cannot be started by hand", "%s says RefuseManualStart: only another unit may start it", u.ID)
	case k.wish.state == "stopped" && u.RefuseStop && u.running():
		return wrong("state", "Unit cannot be stopped by hand", "%s says RefuseManualStop: only another unit may stop it", u.ID)
	case k.wish.state == "running" && u.Type == "oneshot" && !u.RemainAfterExit:
		return wrong("state", "Unit cannot stay running",
			"%s is a oneshot without RemainAfterExit: it runs once, ends, and is never running; enable it, or start it from a timer", u.ID)
	}
	return nil
}

// refuseEnabling explains why there is nothing to enable.
func (k *unitWork) refuseEnabling(file string) error {
	id := k.u.ID
	wrong := func(format string, args ...any) error {
		return &AttrError{Attr: "enabled", Summary: "Unit cannot be enabled", Err: fmt.Errorf(format, args...)}
	}
	switch file {
	case "static":
		return wrong("%s is static: nothing to enable; start it, or let another unit depend on it", id)
	case "indirect":
		return wrong("%s is indirect: it is not enabled itself; enable the unit that its file names with Also=, or an instance of it", id)
	case "generated":
		return wrong("%s is made by a generator at every boot: it cannot be enabled here, only where it is made from (%s)", id, sourceText(k.u))
	case "transient":
		return wrong("%s is transient: it has no file, and is gone after the next boot", id)
	case "alias":
		return wrong("%s is another unit's name: enable that unit", id)
	}
	return nil
}

func sourceText(u *unit) string {
	if u.Source != "" {
		return quote(u.Source)
	}
	return quote(u.Fragment)
}

// refuseMasked says that a mask is in the way of what is declared.
func (k *unitWork) refuseMasked() error {
	if k.g == nil {
		return nil
	}
	masked := k.masks()
	for _, a := range k.acts {
		switch a.do {
		case "take", "unmask":
			masked = without(masked, a.links)
		case "put":
			for _, l := range a.links {
				if l.masks() {
					masked = append(masked, l)
				}
			}
		}
	}
	enable := k.wish.enabled != nil && *k.wish.enabled
	starts := k.acting("start") || k.wish.state == "running"
	if len(masked) == 0 || !starts && !enable {
		return nil
	}
	attr, what := "state", "started"
	if !starts {
		attr, what = "enabled", "enabled"
	}
	return &AttrError{Attr: attr, Summary: "Unit is masked", Err: fmt.Errorf(
		"%s is masked by %s and cannot be %s; write masked = false to lift the mask", k.u.ID, quote(masked[0].Path), what)}
}

// fitUnit checks a turn against what the run leaves around the unit.
func (k *unitWork) fitUnit() error {
	if k.g == nil || k.u == nil {
		return nil
	}
	w, id := k.w, k.u.ID
	if !k.u.known() {
		if w.comesWith(id) == "" {
			return &AttrError{Attr: "unit", Summary: "Unknown unit", Err: fmt.Errorf(
				"systemd knows no unit %s, and nothing declared before it brings one; check the name with: systemctl list-unit-files", id)}
		}
		return nil
	}
	if key := w.goesWithPackage(id); key != "" {
		return &AttrError{Attr: "unit", Summary: "Unit goes", Err: fmt.Errorf("this run takes %s away, which brings %s", key, id)}
	}
	if gone := w.goesWith(k.u); gone != "" {
		return &AttrError{Attr: "unit", Summary: "Unit goes", Err: fmt.Errorf("this run takes %s away, which is the file of %s", quote(gone), id)}
	}
	if k.acting("mask") {
		p := linkDirs[0] + "/" + id
		n, err := w.look(p)
		if err != nil {
			return err
		}
		if n.Type != Absent && !(unitLink{p, n}).masks() {
			return &AttrError{Attr: "masked", Summary: "Unit cannot be masked", Err: fmt.Errorf(
				"a mask of %s would be a link at %s, where a %s is; declare that file away first, or only disable the unit", id, quote(p), n.Type)}
		}
	}
	for _, served := range k.serves {
		if k.acting("start") && !k.u.running() && w.willRun(served) {
			return &AttrError{Attr: "state", Summary: "Socket of a running service", Err: fmt.Errorf(
				"%s cannot be started while %s runs, which gets its sockets when it starts; stop that first, and let the socket start it", id, served.ID)}
		}
	}
	reloads := len(words(k.g.Attrs, "reload_on")) > 0
	if reloads && !k.u.CanReload && k.u.Load == "loaded" && !w.rewritten(id) {
		return &AttrError{Attr: "reload_on", Summary: "Unit cannot reload", Err: fmt.Errorf(
			"%s has no way to read its configuration again (no ExecReload=); write restart_on instead", id)}
	}
	return nil
}

// alias tells that the unit is declared by another of its names.
func (k *unitWork) alias() string {
	name := unitName(str(k.g.Attrs, "unit"))
	if name == k.u.ID || strings.TrimSpace(name) == "" || !slices.Contains(k.u.Names, name) {
		return ""
	}
	return fmt.Sprintf("%s is %s here", name, k.u.ID)
}
