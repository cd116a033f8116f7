package reconcilers

import (
	"context"
	"crypto/md5"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"golem/state"
)

// A pkgFile is one path that a package has a say in, its configuration, and what stood
// there.
type pkgFile struct {
	Path string `json:"path"`
	Node Node   `json:"node"`
}

// besideConffile is what dpkg names its own version of a file that somebody changed.
const besideConffile = ".dpkg-dist"

// lookAtFiles observes configuration files, what dpkg may put beside them, and the
// directories they are in, outermost first.
func (w *World) lookAtFiles(paths []string) ([]pkgFile, error) {
	names := map[string]bool{}
	for _, p := range paths {
		names[p], names[p+besideConffile] = true, true
		for _, dir := range ancestors(p) {
			if !protected[dir] {
				names[dir] = true
			}
		}
	}
	var files []pkgFile
	for _, p := range slices.Sorted(maps.Keys(names)) {
		at, err := w.resolve(p, false)
		if err != nil {
			continue // where golem follows no link, it puts nothing back either
		}
		n, err := w.Host.observe(w.d, at.real, 0)
		if err != nil {
			return nil, err
		}
		isParent := slices.ContainsFunc(paths, func(file string) bool { return beneath(file, p) })
		if isParent && n.Type != Dir || !isParent && !keepable(n.Type) && n.Type != Absent {
			continue
		}
		n.Links, n.Mount = 0, false
		files = append(files, pkgFile{at.real, n})
	}
	return files, nil
}

// storeFiles gives the journal the bytes of files.
func (w *World) storeFiles(store Store, files []pkgFile) error {
	for i := range files {
		if err := w.store(store, files[i].Path, files[i].Node); err != nil {
			return err
		}
		files[i].Node = stored(files[i].Node)
	}
	return nil
}

// putFiles makes paths what they are to be. What stands in the way and is nobody's that
// is known is kept first.
func (w *World) putFiles(ctx context.Context, keep keeper, files []pkgFile, known func(path string, n Node) bool) error {
	b := w.Host.newBatch(w.Blobs, keep, len(files))
	defer b.close()
	for _, f := range files {
		now, err := w.Host.observe(b.d, f.Path, 0)
		if err != nil {
			return err
		}
		if differs(now, f.Node) == "" || now.Type == Dir && f.Node.Type != Dir || f.Node.Type == Dir && now.Type != Absent {
			continue
		}
		if dir, name := split(f.Path); now.Type == File && !known(f.Path, now) {
			fd, err := b.d.fd(dir)
			if err != nil {
				return fmt.Errorf("open %s: %w", quote(dir), err)
			}
			if err := b.keepAt(fd, name, f.Path, now); err != nil {
				return err
			}
		}
		to := f.Node
		if now.Links > 1 || now.Mount {
			to.Links, to.Mount = now.Links, now.Mount
		}
		if _, err := b.run(ctx, []*shift{{path: f.Path, from: now, to: to, temp: tempName()}}); err != nil {
			return err
		}
	}
	return nil
}

// shipped says whether a file on the host has the bytes that its package shipped.
func (w *World) shipped(e *dpkgEntry, path string) bool {
	if e == nil {
		return false
	}
	for _, c := range e.conffiles {
		if at, err := w.resolve(c.path, false); err == nil && at.real == path {
			sum, err := w.Host.md5(path)
			return err == nil && sum == c.md5
		}
	}
	return strings.HasSuffix(path, besideConffile) // dpkg's own
}

// md5 is the sum of a file's bytes, as dpkg keeps it.
func (h *Host) md5(path string) (string, error) {
	f, err := h.openAt(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := md5.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", wrap(err, "read", path)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// conffilesOf lists the paths of a package's configuration files, as it is on the host
// and as a transaction brings it.
func (e *dpkgEntry) conffilesOf() []string {
	var paths []string
	if e != nil {
		for _, c := range e.conffiles {
			paths = append(paths, c.path)
		}
	}
	return paths
}

// captureFiles looks at the configuration files of the packages that a transaction
// touches, those that only the new package knows among them: it is fetched for that. What
// comes is to go again, if need be, in a way that fits what is there now.
func (k *pkgWork) captureFiles(store Store, turns []*Turn) error {
	controls, err := k.fetch()
	if err != nil {
		return err
	}
	for i := range k.tx.effects {
		e := &k.tx.effects[i]
		if e.stays() {
			continue
		}
		paths := k.d.real.packages[e.Resource].conffilesOf()
		if c := controls[e.Resource]; c != nil {
			paths = append(paths, c.conffiles...)
		}
		if e.Unmade, err = k.w.wayBack(e, asked(turns, e), controls[e.Resource]); err != nil {
			return err
		}
		if e.Files, err = k.w.lookAtFiles(paths); err != nil {
			return err
		}
		if err := k.w.storeFiles(store, e.Files); err != nil {
			return err
		}
		if err := k.w.storeFiles(store, e.After); err != nil {
			return err
		}
	}
	return nil
}

// fetch has apt fetch the packages that the transaction brings, and reads what they say
// of themselves. What is fetched lies in apt's cache, where the transaction
// finds it.
func (k *pkgWork) fetch() (map[string]*debControl, error) {
	files := &debFiles{h: k.w.Host, blobs: k.w.Blobs}
	run, err := aptRunFor(k.tx.effects, files, k.tx.lift)
	all := map[string]*debControl{}
	if err == nil && run.brings {
		var said *AptError
		if err = k.download(run); errors.As(err, &said) && strings.Contains(said.Said, "Failed to fetch") && !k.w.Host.apt.updated {
			// The archive has moved on since the lists were fetched. What is not in it any
			// more is not to be had; what is, is what was shown.
			if err = k.w.Host.update(k.ctx, k.w.Timeout); err == nil {
				err = k.download(run)
			}
		}
		for _, e := range k.tx.effects {
			if err == nil && e.To.there() && !e.stays() {
				all[e.Resource], err = k.inspect(e, files)
			}
		}
	}
	return all, errors.Join(err, files.remove())
}

// download has apt fetch what a run needs. Should golem be killed meanwhile, the next run
// waits for it: it holds a lock that taking the run back needs.
func (k *pkgWork) download(run *aptRun) error {
	argv := aptGet(slices.Concat(run.flags, []string{"--download-only", "install"}, run.args)...)
	out, err := k.w.Host.Do(k.ctx, Command{Argv: argv, Env: aptQuiet, Awaited: true, Timeout: k.w.Timeout})
	if err == nil {
		return nil
	}
	if locked := k.w.Host.locked(out); locked != nil {
		return locked
	}
	return aptSaid(out, err)
}

// inspect reads what one package that the transaction brings says of itself.
func (k *pkgWork) inspect(e pkgEffect, files *debFiles) (*debControl, error) {
	if e.Deb != nil {
		file, err := files.write(e.Resource, e.To.Version, *e.Deb)
		if err != nil {
			return nil, err
		}
		return k.readDeb(file)
	}
	name, arch, foreign := strings.Cut(e.Resource, ":")
	if !foreign {
		arch = k.d.real.native
	}
	for _, a := range []string{arch, "all"} {
		if file := k.w.Host.cached(name, e.To.Version, a); file != "" {
			return k.readDeb(filepath.Join(k.w.Host.Root, file))
		}
	}
	dir, err := k.w.Host.scratchDir("debs") // apt caches nothing that lies on a disk
	if err != nil {
		return nil, fmt.Errorf("fetch %s: %w", e.Resource, err)
	}
	defer os.RemoveAll(dir)
	out, err := k.w.Host.Do(k.ctx, Command{Argv: []string{"apt-get", "-q", "download", e.Resource + "=" + e.To.Version}, Dir: dir, Changes: true, Timeout: k.w.Timeout})
	if err != nil {
		return nil, aptSaid(out, err)
	}
	found, err := filepath.Glob(filepath.Join(dir, "*.deb"))
	if err != nil || len(found) != 1 {
		return nil, fmt.Errorf("fetch %s: apt-get download left %d files", e.Resource, len(found))
	}
	return k.readDeb(found[0])
}

// readDeb reads what a package file says of itself.
func (k *pkgWork) readDeb(file string) (*debControl, error) {
	conffiles, err := k.component(file, "conffiles")
	if err != nil {
		return nil, err
	}
	c := &debControl{}
	for _, line := range strings.Split(conffiles, "\n") {
		if at := strings.IndexByte(line, '/'); at >= 0 && !strings.HasPrefix(line, "remove-on-upgrade") {
			c.conffiles = append(c.conffiles, strings.TrimRight(line[at:], " "))
		}
	}
	c.postrm, err = k.component(file, "postrm")
	return c, err
}

// component reads one of the files about itself that a package file holds; "" for none.
func (k *pkgWork) component(file, name string) (string, error) {
	out, err := k.w.Host.dpkgDeb(k.ctx, "-I", file, name)
	var failed *CommandError
	if errors.As(err, &failed) && failed.Code == 2 && strings.Contains(failed.Said, name) {
		return "", nil
	}
	return string(out.Stdout), err
}

// settleFiles works out, before a package goes or gives back its version, what its
// configuration files are to be after it.
func (w *World) settleFiles(e *dpkgEntry, effect *pkgEffect, found Pkg, before []pkgFile) error {
	was := map[string]Node{}
	for _, f := range before {
		was[f.Path] = f.Node
	}
	files, err := w.lookAtFiles(e.conffilesOf())
	if err != nil {
		return err
	}
	for _, f := range files {
		old, known := was[f.Path]
		declared := w.isSurface(f.Path) || w.unpackedAt(f.Path)
		switch {
		case effect.Purge && f.Node.Type != Absent && (declared || known && old.Type != Absent):
			effect.After = append(effect.After, f) // it was there before the package, and is not the package's to take
		case effect.Purge || !known || f.Node.Type == Dir || declared:
		case strings.HasSuffix(f.Path, besideConffile):
			if old.Type == Absent && f.Node.Type != Absent {
				effect.After = append(effect.After, pkgFile{f.Path, old})
			}
		case found.Status == dpkgConfigFiles && !effect.To.there() && w.shipped(e, f.Path):
			effect.After = append(effect.After, pkgFile{f.Path, old})
		}
	}
	effect.After = append(effect.After, dirsOf(files, effect.After)...)
	if found.there() && effect.To.there() {
		for _, f := range before {
			if strings.HasSuffix(f.Path, besideConffile) && f.Node.Type == Absent && !slices.ContainsFunc(effect.After, func(g pkgFile) bool { return g.Path == f.Path }) {
				effect.After = append(effect.After, f)
			}
		}
	}
	sort.SliceStable(effect.After, func(i, j int) bool { return effect.After[i].Path < effect.After[j].Path })
	return nil
}

// dirsOf lists the directories, of those looked at, that some files lie in: dpkg may take
// them with a package, and then they are made again for what stays.
func dirsOf(looked, files []pkgFile) []pkgFile {
	var dirs []pkgFile
	for _, d := range looked {
		if d.Node.Type == Dir && slices.ContainsFunc(files, func(f pkgFile) bool { return f.Node.Type != Absent && beneath(f.Path, d.Path) }) &&
			!slices.ContainsFunc(files, func(f pkgFile) bool { return f.Path == d.Path }) {
			dirs = append(dirs, d)
		}
	}
	return dirs
}

// changedConffiles are the configuration files that a purge takes and that somebody
// changed: they are kept first.
func (w *World) changedConffiles(e *dpkgEntry, effect *pkgEffect) ([]state.Kept, error) {
	if !effect.Purge || e == nil {
		return nil, nil
	}
	files, err := w.lookAtFiles(e.conffilesOf())
	if err != nil {
		return nil, err
	}
	var keeps []state.Kept
	for _, f := range files {
		spared := slices.ContainsFunc(effect.After, func(g pkgFile) bool { return g.Path == f.Path })
		if !spared && f.Node.Type == File && !w.shipped(e, f.Path) {
			keeps = append(keeps, kept(f.Path, f.Node, "changed by hand, and purged with "+e.name))
		}
	}
	return keeps, nil
}
