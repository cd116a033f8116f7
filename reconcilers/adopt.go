package reconcilers

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"golem/scrolls"
)

// An AdoptError says why a thing cannot be declared as it is.
type AdoptError struct{ Kind, ID, Why string }

func (e *AdoptError) Error() string {
	return fmt.Sprintf("adopt %s %s: %s", e.Kind, quote(e.ID), e.Why)
}

// adopters look at what is there and say what a glyph of the kind would declare, so that
// nothing changes. They only read.
var adopters = map[string]func(ctx context.Context, w *World, id string) (scrolls.Attrs, error){
	"file": adoptFile, "directory": adoptDirectory, "link": adoptLink, aptKindName: adoptPackage, "service": adoptUnit,
	"container": adoptContainer, "network": adoptNetwork, "user": adoptUser, "group": adoptGroup, "access": adoptAccess,
	"line": adoptLine, "region": adoptRegion, "entry": adoptEntry,
}

// needsLive are the kinds whose things the host's own programs tell of, and make.
var needsLive = map[string]bool{aptKindName: true, "service": true, "container": true, "network": true, "user": true, "group": true}

// namedInParts says whether what names a thing of a kind is more than the host's own name
// for it.
func namedInParts(k Kind) bool { return k.shape != "" || k.Name == regionKind.Name }

// wholeID is the host's own name for a thing that is named so, or by its key.
func wholeID(kind, id string) string {
	if _, ok := strings.CutPrefix(id, kind+":"); !ok {
		return id
	}
	return strings.Join(scrolls.Key(id).Parts(), ":") // a package may have an architecture
}

// An Adopted is what a glyph of a kind would declare of what is there.
type Adopted struct {
	Kind  Kind
	Attrs scrolls.Attrs
	// Secret is the attribute whose value not everybody may read on the host; "" for none. A file
	// says so by itself.
	Secret string
}

// Text is the block of the glyph.
func (a *Adopted) Text() []byte {
	return scrolls.WriteGlyph(a.Kind.Kind, adoptedLabel(a.Kind, a.Attrs), a.Attrs, a.Secret)
}

// Key is the glyph's key.
func (a *Adopted) Key() scrolls.Key { return a.Kind.KeyOf(a.Attrs) }

// Adopt says what a glyph of a kind would declare of what is there. id is the thing's name
// as the host has it, or a key.
func Adopt(ctx context.Context, w *World, kind, id string) (*Adopted, error) {
	look := adopters[kind]
	k, _ := KindOf(kind)
	if look == nil {
		return nil, &AdoptError{kind, id, strings.ToLower(k.NoAdopt[:1]) + strings.TrimSuffix(k.NoAdopt[1:], ".")}
	}
	if needsLive[kind] && !w.Host.Live() {
		return nil, &AdoptError{kind, id, "that needs a host that runs, and this is a file tree"}
	}
	if !namedInParts(k) {
		id = wholeID(kind, id)
	}
	attrs, err := look(ctx, w, id)
	if err != nil {
		return nil, err
	}
	if !spellable(map[string]any(attrs)) {
		return nil, &AdoptError{kind, id, "it has a name that cannot be written in a scroll (not UTF-8 in normal form C)"}
	}
	if problems := k.Check(attrs); len(problems) > 0 {
		return nil, &AdoptError{kind, id, problems[0].Detail}
	}
	secret, err := w.secretPart(kind, attrs)
	return &Adopted{k, attrs, secret}, err
}

// secretPart is the attribute of an edit that is part of a file which not everybody may read.
// What is in the key is shown everywhere, so that it cannot be one.
func (w *World) secretPart(kind string, a scrolls.Attrs) (string, error) {
	part := map[string]string{regionKind.Name: "content", entryKind.Name: "value"}[kind]
	if _, ok := a[part]; !ok {
		return "", nil
	}
	at, err := w.resolve(str(a, "path"), true)
	if err != nil {
		return "", err
	}
	if n, err := w.look(at.real); err != nil || n.Mode&0o004 != 0 {
		return "", err
	}
	return part, nil
}

// adoptNode looks at a path, and refuses another type.
func adoptNode(w *World, kind, p string, typ Type, keep int64) (Node, error) {
	if problems := checkPath("path", p); len(problems) > 0 {
		return Node{}, &AdoptError{kind, p, problems[0].Detail}
	}
	n, err := w.Host.observe(w.d, p, keep)
	switch {
	case err != nil:
		return n, err
	case n.Type == Absent:
		return n, &AdoptError{kind, p, "there is nothing"}
	case n.Type != typ:
		return n, &AdoptError{kind, p, n.Type.noun() + " is there"}
	}
	return n, nil
}

// withOwner adds mode and owner as they are.
func (w *World) withOwner(a scrolls.Attrs, n Node) scrolls.Attrs {
	a["mode"] = fmt.Sprintf("%04o", n.Mode)
	a["owner"], a["group"] = w.Host.userName(n.UID), w.Host.groupName(n.GID)
	return a
}

// maxAdopted is the largest file that is written into a scroll.
const maxAdopted = 1 << 20

// adoptFile declares a file with its bytes. Of one that not everybody may read nothing is shown
// from then on. The files with passwords are refused.
func adoptFile(_ context.Context, w *World, p string) (scrolls.Attrs, error) {
	if base := strings.TrimSuffix(p, "-"); base == shadowFile || base == gshadowFile {
		return nil, &AdoptError{"file", p, "passwords stand in it; adopt the users and groups, one by one"}
	}
	n, err := adoptNode(w, "file", p, File, maxAdopted)
	if err != nil {
		return nil, err
	}
	if n.Size > maxAdopted {
		return nil, &AdoptError{"file", p, "it is larger than 1 MiB; copy it beside the scroll, and declare it with source"}
	}
	a := scrolls.Attrs{"path": p}
	// Two signs before a brace are read as an escaped one.
	if text := string(n.data); scrolls.Spellable(text) && !strings.Contains(text, "$${") && !strings.Contains(text, "%%{") {
		a["content"] = text
	} else {
		a["content_base64"] = base64.StdEncoding.EncodeToString(n.data)
	}
	if n.Mode&0o004 == 0 {
		a["sensitive"] = true
	}
	return w.withOwner(a, n), nil
}

func adoptDirectory(_ context.Context, w *World, p string) (scrolls.Attrs, error) {
	n, err := adoptNode(w, "directory", p, Dir, 0)
	if err != nil {
		return nil, err
	}
	return w.withOwner(scrolls.Attrs{"path": p}, n), nil
}

func adoptLink(_ context.Context, w *World, p string) (scrolls.Attrs, error) {
	n, err := adoptNode(w, "link", p, Link, 0)
	if err != nil {
		return nil, err
	}
	return scrolls.Attrs{"path": p, "target": string(n.Target)}, nil
}

// adoptPackage declares a package that is there, without a version: an upgrade from
// elsewhere is no drift.
func adoptPackage(ctx context.Context, w *World, name string) (scrolls.Attrs, error) {
	if problems := checkPackageName(name); len(problems) > 0 {
		return nil, &AdoptError{aptKindName, name, problems[0].Detail}
	}
	d, err := w.aptDesk(ctx)
	if err != nil {
		return nil, err
	}
	plain, arch, _ := strings.Cut(name, ":")
	e := d.real.packages[d.real.resource(plain, arch)]
	switch {
	case e == nil:
		return nil, &AdoptError{aptKindName, name, "dpkg knows no such package here"}
	case !e.there():
		return nil, &AdoptError{aptKindName, name, "it is not installed"}
	}
	a := scrolls.Attrs{"name": name}
	if e.Hold {
		a["hold"] = true
	}
	return a, nil
}

// adoptUnit declares whether a unit runs, and whether it is enabled or masked.
func adoptUnit(ctx context.Context, w *World, name string) (scrolls.Attrs, error) {
	if problems := checkUnitName("unit", name); len(problems) > 0 {
		return nil, &AdoptError{"service", name, problems[0].Detail}
	}
	if !w.Host.systemd() {
		return nil, &AdoptError{"service", name, "systemd does not run here"}
	}
	u, err := w.unit(ctx, unitName(name))
	if err != nil {
		return nil, err
	}
	if !u.known() {
		return nil, &AdoptError{"service", name, "systemd knows no such unit"}
	}
	wakers, err := w.wakers(ctx, u)
	if err != nil {
		return nil, err
	}
	a := scrolls.Attrs{"unit": unitName(name)}
	switch {
	case u.running():
		a["state"] = "running"
	case u.Active == "inactive" && u.Type != "oneshot" && len(wakers) == 0: // stopped for good
		a["state"] = "stopped"
	}
	switch u.File {
	case "enabled":
		a["enabled"] = true
	case "disabled":
		a["enabled"] = false
	case "masked":
		delete(a, "state")
		if w.maskedHere(u.ID) {
			a["masked"] = true
		}
	}
	if len(a) == 1 && u.File == "masked" {
		return nil, &AdoptError{"service", name, "it is masked by its package, not by anybody here"}
	}
	if len(a) == 1 && len(wakers) > 0 {
		return nil, &AdoptError{"service", name, fmt.Sprintf("it waits for %s to start it; adopt that", sentence(wakers))}
	}
	if len(a) == 1 {
		return nil, &AdoptError{"service", name, fmt.Sprintf("it is %s, and %s: there is nothing of it to declare", u.Active, cmp.Or(u.File, "without a file"))}
	}
	return a, nil
}

// wakers are the sockets, timers and paths that are up and start a unit when it is called for.
func (w *World) wakers(ctx context.Context, u *unit) ([]string, error) {
	var up []string
	for _, id := range u.TriggeredBy {
		by, err := w.unit(ctx, id)
		if err != nil {
			return nil, err
		}
		if by.running() {
			up = append(up, id)
		}
	}
	return up, nil
}

// maskedHere says whether a unit is masked where an administrator does.
func (w *World) maskedHere(unit string) bool {
	n, err := w.look("/etc/systemd/system/" + unit)
	return err == nil && n.Type == Link && string(n.Target) == "/dev/null"
}

// spellable says whether a scroll can say every text in a value.
func spellable(value any) bool {
	switch v := value.(type) {
	case string:
		return scrolls.Spellable(v)
	case []any:
		return !slices.ContainsFunc(v, func(one any) bool { return !spellable(one) })
	case map[string]any:
		for name, one := range v {
			if !scrolls.Spellable(name) || !spellable(one) {
				return false
			}
		}
	}
	return true
}
