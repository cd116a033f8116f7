package reconcilers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golem/scrolls"
)

const dpkgStatus = "/var/lib/dpkg/status"

// altered says whether the run so far changes what apt would reckon with.
func (d *aptDesk) altered() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for resource, p := range d.over {
		is := d.real.state(resource)
		if is.there() != p.there() || is.Version != p.Version && p.there() || is.Auto != p.Auto || is.Hold != p.Hold {
			return true
		}
	}
	return false
}

// until is the desk as the first so many of the packages that transactions touched leave
// it.
func (d *aptDesk) until(n int) *aptDesk {
	early := &aptDesk{real: d.real, over: maps.Clone(d.over), debs: d.debs, by: d.by, declared: d.declared, done: d.done[:n]}
	for _, resource := range d.done[n:] {
		delete(early.over, resource)
	}
	return early
}

// predicted writes dpkg's status and apt's marks as the run so far leaves them to a
// directory, and returns apt's options to read them there. Nothing where they are as on
// the host.
func (d *aptDesk) predicted(ctx context.Context, w *World, dir string) ([]string, error) {
	if !d.altered() {
		return nil, nil
	}
	status, err := d.status(ctx, w)
	if err != nil {
		return nil, err
	}
	options := []string{"-o", "Dir::Cache::pkgcache="} // it would be of this host no more
	for _, part := range [][2]string{{"status", status}, {"extended_states", d.marks()}} {
		file := filepath.Join(dir, part[0])
		if err := os.WriteFile(file, []byte(part[1]), 0o644); err != nil {
			return nil, fmt.Errorf("write out what the run leaves: %w", err)
		}
		options = append(options, "-o", "Dir::State::"+part[0]+"="+file)
	}
	return options, nil
}

// status is dpkg's status file as the run so far leaves it.
func (d *aptDesk) status(ctx context.Context, w *World) (string, error) {
	f, err := w.Host.openAt(dpkgStatus)
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(f)
	if err := errors.Join(err, f.Close()); err != nil {
		return "", wrap(err, "read", dpkgStatus)
	}
	d.mu.Lock()
	over := maps.Clone(d.over)
	d.mu.Unlock()
	var out strings.Builder
	for _, stanza := range strings.Split(string(text), "\n\n") {
		field := stanzaFields(stanza)
		resource := d.real.resource(field["Package"], field["Architecture"])
		p, changed := over[resource]
		switch {
		case !changed:
			out.WriteString(strings.TrimRight(stanza, "\n") + "\n\n")
		case p.there() && p.Version == field["Version"]:
			out.WriteString(withStatus(stanza, p))
			delete(over, resource)
		}
	}
	for _, resource := range slices.Sorted(maps.Keys(over)) {
		p := over[resource]
		if !p.there() {
			continue
		}
		stanza, err := d.stanza(ctx, w, resource, p.Version)
		if err != nil {
			return "", err
		}
		out.WriteString(withStatus(stanza, p))
	}
	return out.String(), nil
}

func stanzaFields(stanza string) map[string]string {
	field := map[string]string{}
	for _, line := range strings.Split(stanza, "\n") {
		if name, value, ok := strings.Cut(line, ": "); ok && line[0] != ' ' {
			field[name] = value
		}
	}
	return field
}

// withStatus is a package's stanza with it being there.
func withStatus(stanza string, p Pkg) string {
	want := "install"
	if p.Hold {
		want = "hold"
	}
	var out strings.Builder
	for _, line := range strings.Split(strings.Trim(stanza, "\n"), "\n") {
		if !strings.HasPrefix(line, "Status: ") {
			out.WriteString(line + "\n")
		}
		if strings.HasPrefix(line, "Package: ") {
			out.WriteString("Status: " + want + " ok installed\n")
		}
	}
	return out.String() + "\n"
}

// stanza is what a package says of itself that a transaction brings.
func (d *aptDesk) stanza(ctx context.Context, w *World, resource, version string) (string, error) {
	kept := d.debs[resource]
	if body, ok := w.pkgLedger(resource); ok && kept == nil {
		if d, ok := body.Debs[version]; ok {
			kept = &d
		}
	}
	if kept != nil {
		files := &debFiles{h: w.Host, blobs: w.Blobs}
		file, err := files.write(resource, version, *kept)
		var out Output
		if err == nil {
			out, err = w.Host.dpkgDeb(ctx, "-f", file)
		}
		return string(out.Stdout), errors.Join(err, files.remove())
	}
	return w.Host.show(ctx, resource+"="+version)
}

// entry is the package that a stanza describes.
func (d *aptDesk) entry(ctx context.Context, w *World, resource, version string) (*dpkgEntry, error) {
	stanza, err := d.stanza(ctx, w, resource, version)
	if err != nil {
		return nil, err
	}
	field := stanzaFields(stanza)
	e := &dpkgEntry{Pkg: installedPkg(version), name: field["Package"], arch: field["Architecture"]}
	e.essential = field["Essential"] == "yes" || field["Protected"] == "yes"
	e.provides = slices.Concat(parseRelations(field["Provides"])...)
	e.depends = append(parseRelations(field["Pre-Depends"]), parseRelations(field["Depends"])...)
	e.pulls = append(parseRelations(field["Recommends"]), parseRelations(field["Suggests"])...)
	return e, nil
}

// entries are the packages that are there as the run so far leaves them.
func (d *aptDesk) entries(ctx context.Context, w *World) (map[string]*dpkgEntry, error) {
	d.mu.Lock()
	over := maps.Clone(d.over)
	d.mu.Unlock()
	there := map[string]*dpkgEntry{}
	for resource, e := range d.real.packages {
		if p, ok := over[resource]; e.there() && (!ok || p.there() && p.Version == e.Version) {
			there[resource] = e
		}
	}
	for _, resource := range slices.Sorted(maps.Keys(over)) {
		if p := over[resource]; p.there() && there[resource] == nil {
			e, err := d.entry(ctx, w, resource, p.Version)
			if err != nil {
				return nil, err
			}
			there[resource] = e
		}
	}
	return there, nil
}

// clashes is the key for which an earlier transaction brings what a work does not go
// together with.
func (j *joining) clashes(k *pkgWork) scrolls.Key {
	for n := range len(j.d.done) + 1 {
		early := *j
		early.d = j.d.until(n)
		if _, err := early.ask([]*pkgWork{k}); err == nil {
			continue
		}
		if n == 0 {
			return ""
		}
		return j.d.by[j.d.done[n-1]]
	}
	return ""
}
