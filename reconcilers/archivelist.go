package reconcilers

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"golem/scrolls"
)

// An archiveEntry is one thing that an archive puts into its directory.
type archiveEntry struct {
	Path   Bytes  `json:"path"` // below the directory; "" for the directory itself
	Type   Type   `json:"type"`
	Mode   int    `json:"mode,omitempty"` // of a file or directory
	Size   int64  `json:"size,omitempty"`
	Hash   string `json:"hash,omitempty"` // of a file: SHA-256, hex
	Target Bytes  `json:"target,omitempty"`
	Mtime  int64  `json:"mtime,omitempty"` // 0: any
	at     int    // which entry of the archive has its bytes
}

// An archiveList is all that an archive puts into its directory, in order of path, which
// has a directory before what is in it.
type archiveList struct {
	entries []archiveEntry
	files   int // links among them
	dirs    int
	size    int64
}

// archiveBounds are how much may come out of an archive.
type archiveBounds struct {
	entries int
	floor   int64 // bytes that any archive may hold
	ratio   int64 // and times its own size that a large one may
}

var usualBounds = archiveBounds{entries: 100_000, floor: 1 << 30, ratio: 200}

const maxTarget = 4095 // bytes of a link's text (PATH_MAX)

// A HostileError says which entries of an archive golem does not unpack, and so nothing
// of it.
type HostileError struct {
	Archive string
	Faults  []string
	More    int
}

func (e *HostileError) Error() string {
	text := fmt.Sprintf("%s is refused, nothing of it is unpacked: %s", e.Archive, strings.Join(e.Faults, "; "))
	if e.More > 0 {
		text += fmt.Sprintf("; and %d more", e.More)
	}
	return text
}

// most bounds the bytes that may come out of an archive.
func (b archiveBounds) most(size int64) int64 { return max(b.floor, b.ratio*size) }

// A lister checks an archive's entries, one after the other, and then all together.
type lister struct {
	from     string
	dest     string
	strip    int
	include  []string
	exclude  []string
	bounds   archiveBounds
	raw      map[string]packedListed // by clean name, before strip
	wanted   map[string]archiveEntry
	order    []string // of wanted
	dirModes map[string]int
	faults   []string
	more     int
}

// A packedListed is an entry that a hard link may name.
type packedListed struct {
	entry archiveEntry
	ok    bool // a file or link
}

// list goes through an archive and checks every entry. Nothing of it is kept but names
// and hashes.
func (p packed) list(ctx context.Context, a scrolls.Attrs, bounds archiveBounds) (*archiveList, error) {
	l := &lister{
		from: p.from, dest: str(a, "path"), strip: wholeNumber(a, "strip", 0), include: words(a, "include"), exclude: words(a, "exclude"),
		bounds: bounds, raw: map[string]packedListed{}, wanted: map[string]archiveEntry{}, dirModes: map[string]int{},
	}
	w, err := p.open(ctx, bounds.most(p.size))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.from, err)
	}
	defer w.Close()
	for at := 0; ; at++ {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		e, err := w.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil && at == bounds.entries {
			return nil, &HostileError{Archive: p.from, Faults: []string{fmt.Sprintf("it holds more than %d entries", bounds.entries)}}
		}
		if err == nil {
			err = l.take(e, at, w)
		}
		if err != nil {
			return nil, l.broken(err)
		}
	}
	if t, ok := w.(*tarWalker); ok && t.open && str(a, "sha256") == "" {
		return nil, l.broken(errUnmarked)
	}
	return l.finish()
}

// broken is why an archive cannot be read to its end.
func (l *lister) broken(err error) error {
	var bound *boundError
	if errors.As(err, &bound) {
		return &HostileError{Archive: l.from, Faults: []string{bound.Error()}}
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New("it ends too early")
	}
	return fmt.Errorf("read %s: %w", l.from, err)
}

// fault notes what is wrong with an entry.
func (l *lister) fault(name, format string, args ...any) {
	const most = 5
	if len(l.faults) == most {
		l.more++
		return
	}
	l.faults = append(l.faults, quoted(name)+" "+fmt.Sprintf(format, args...))
}

// quoted is a name from an archive as a person reads it, always in quotes.
func quoted(name string) string {
	if text := quote(name); strings.HasPrefix(text, `"`) {
		return text
	}
	return `"` + name + `"`
}

// take checks one entry by itself.
func (l *lister) take(e packedEntry, at int, content io.Reader) error {
	name, why := cleanEntry(e.name)
	if why != "" {
		l.fault(e.name, "%s", why)
		return nil
	}
	entry := archiveEntry{Type: e.typ, Mode: filePerm(e.mode), Size: e.size, Target: Bytes(e.target), Mtime: e.mtime, at: at}
	switch {
	case e.hard:
		target, why := cleanEntry(e.target)
		of, there := l.raw[target]
		if why != "" || !there || !of.ok {
			l.fault(e.name, "is a hard link to %s, which is no file before it in the archive", quoted(e.target))
			return nil
		}
		entry = of.entry
	case e.typ == File:
		var err error
		if entry.Hash, entry.Size, err = hashOf(content); err != nil {
			return err
		}
		entry.Target = ""
	case e.typ == Dir:
		entry = archiveEntry{Type: Dir, Mode: dirPerm(e.mode)}
	case e.typ == Link:
		entry.Mode, entry.Size, entry.Mtime = 0, 0, 0
	}
	l.raw[name] = packedListed{entry, e.typ == File || e.typ == Link}
	rel, ok := l.stripped(name)
	if !ok || !l.selects(rel, e.typ) {
		return nil
	}
	switch {
	case e.typ == Special:
		l.fault(e.name, "is %s; golem unpacks files, directories and links", e.what)
	case rel == "" && e.typ != Dir:
		l.fault(e.name, "stands for the directory itself, and is none")
	case e.typ != Dir && entry.Type == File && e.mode&0o6000 != 0:
		l.fault(e.name, "is setuid or setgid (mode %04o)", e.mode)
	default:
		l.want(e.name, rel, entry)
	}
	return nil
}

func hashOf(r io.Reader) (string, int64, error) {
	h := sha256.New()
	n, err := io.Copy(h, r)
	return hex.EncodeToString(h.Sum(nil)), n, err
}

// filePerm are a file's permissions, of an archive that may have none.
func filePerm(mode int) int {
	if mode &= 0o775; mode != 0 {
		return mode
	}
	return defaultFileMode
}

func dirPerm(mode int) int {
	if mode &= 0o775; mode != 0 {
		return mode | 0o700 // golem has to get in
	}
	return defaultDirMode
}

// stripped leaves the leading directories out of a name.
func (l *lister) stripped(name string) (string, bool) {
	if l.strip == 0 {
		return name, true
	}
	parts := strings.Split(name, "/")
	if name == "" || len(parts) < l.strip {
		return "", false
	}
	if len(parts) == l.strip {
		return "", false
	}
	return strings.Join(parts[l.strip:], "/"), true
}

// selects says whether include and exclude let a name be unpacked.
func (l *lister) selects(rel string, typ Type) bool {
	if rel == "" {
		return true
	}
	if matchesAny(l.exclude, rel) {
		return false
	}
	return len(l.include) == 0 || typ == Dir || matchesAny(l.include, rel)
}

// matchesAny says whether a pattern matches a name, or a directory that it is in.
func matchesAny(patterns []string, rel string) bool {
	for _, pattern := range patterns {
		for name := rel; name != "."; name = path.Dir(name) {
			if doublestar.MatchUnvalidated(strings.TrimSuffix(pattern, "/"), name) {
				return true
			}
		}
	}
	return false
}
