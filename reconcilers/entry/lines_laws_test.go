package entry

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// tb is what both testing.T and rapid.T are.
type tb interface {
	Helper()
	Fatalf(format string, args ...any)
}

// putLaws puts a wish on a text and checks what holds of every put. It gives nil where the
// wish is refused or true already.
func putLaws(t tb, f Format, text []byte, w Wish) (out []byte, receipt json.RawMessage) {
	t.Helper()
	saved := bytes.Clone(text)
	out, receipt, err := f.Put(text, w)
	if !bytes.Equal(saved, text) {
		t.Fatalf("%s: the text was changed in place", wishText(w))
	}
	if err != nil {
		var place *PlaceError
		if !errors.As(err, &place) || place.Why == "" {
			t.Fatalf("%s: the refusal is no PlaceError: %v", wishText(w), err)
		}
		return nil, nil
	}
	if receipt == nil {
		if !bytes.Equal(out, text) || !f.Holds(text, w) {
			t.Fatalf("%s: nothing to take back, and yet something changed, or it does not hold", wishText(w))
		}
		return nil, nil
	}
	if f.Holds(text, w) {
		t.Fatalf("%s: it held before it was put", wishText(w))
	}
	keepBack(t, f, text, w, out, receipt)
	first, _, err := f.Put(f.Peel(out, w, receipt), w)
	if err != nil || !bytes.Equal(first, out) {
		t.Fatalf("%s: put anew: %v\n%q\nwant\n%q", wishText(w), err, first, out)
	}
	return out, receipt
}

func wishText(w Wish) string {
	data, _ := json.Marshal(w)
	return string(data)
}

// changedLaws takes a put off without the help of offsets, and off a text to which a
// stranger has added a line.
func changedLaws(t tb, d *dialect, text, out []byte, w Wish, receipt json.RawMessage, where int) {
	t.Helper()
	var m mark
	if err := json.Unmarshal(receipt, &m); err != nil {
		t.Fatalf("%v", err)
	}
	f := formatOf(d)
	if back := d.peelChanged(f, out, w, m); !bytes.Equal(back, text) {
		t.Fatalf("%s: peeled by its rows from\n%q\ngot\n%q\nwant\n%q", wishText(w), out, back, text)
	}
	displacedLaws(t, d, text, out, w, m)
	lines := bytes.SplitAfter(out, []byte("\n"))
	where %= len(lines)
	stranger := []byte("# a stranger was here" + ending(text, len(text)))
	alien := bytes.Join(append(append(append([][]byte{}, lines[:where]...), stranger), lines[where:]...), nil)
	if where == 0 && bytes.HasPrefix(out, []byte(bom)) || amid(m, lines, where) {
		return
	}
	back := f.Peel(alien, w, receipt)
	if bytes.Count(back, stranger) != bytes.Count(out, stranger)+1 {
		t.Fatalf("%s: the stranger's line is gone from\n%q", wishText(w), back)
	}
	i := bytes.Index(back, stranger)
	rest := append(append([]byte{}, back[:i]...), back[i+len(stranger):]...)
	if !bytes.Equal(rest, text) && !bytes.Equal(rest, append(bytes.Clone(text), ending(text, len(text))...)) {
		t.Fatalf("%s: with a stranger in\n%q\npeeled\n%q\nwant\n%q", wishText(w), alien, rest, text)
	}
}

// displacedLaws puts a stranger's value in the place of golem's: what was found comes back
// all the same.
func displacedLaws(t tb, d *dialect, text, out []byte, w Wish, m mark) {
	t.Helper()
	o := m.Ops[0]
	if w.Member || w.Absent || o.Inner != nil || len(o.Raw) == 0 {
		return
	}
	from := o.At + bytes.LastIndex(o.New, o.Raw)
	alien := apply(out, splice{At: from, End: from + len(o.Raw), With: []byte("987")})
	if back := formatOf(d).Peel(alien, w, encode(m)); !bytes.Equal(back, text) && d.readable(alien) {
		t.Fatalf("%s: with a stranger's value in\n%q\npeeled\n%q\nwant\n%q", wishText(w), alien, back, text)
	}
}

// formatOf is the format whose texts are of a dialect's lines.
func formatOf(d *dialect) Format {
	if d == tomlLines {
		return tomlFormat{}
	}
	return d
}

func (d *dialect) readable(text []byte) bool {
	_, err := d.read(text, target{})
	return err == nil
}

// amid says that a line in front of which a stranger writes lies within what golem wrote,
// or within a value that runs over several lines.
func amid(m mark, lines [][]byte, where int) bool {
	offset := len(bytes.Join(lines[:where], nil))
	for _, o := range m.Ops {
		if o.Do != doCut && offset > o.At && offset <= o.At+len(o.New) && bytes.Count(o.New, []byte("\n")) > 1 {
			return true
		}
		if bytes.Contains(bytes.TrimRight(o.Raw, "\n"), []byte("\n")) || bytes.Contains(bytes.TrimRight(o.Old, "\n"), []byte("\n")) {
			return true
		}
	}
	return false
}

// A layer is an edit that was put on a text.
type layer struct {
	w       Wish
	receipt json.RawMessage
}

func (l layer) String() string { return fmt.Sprintf("\n%s with %s", wishText(l.w), l.receipt) }

// anyOrderLaws takes wishes about different keys off in a drawn order, after a stranger's
// edit.
func anyOrderLaws(t *rapid.T, d *dialect, text []byte, wishes []Wish) {
	t.Helper()
	if !bytes.HasSuffix(text, []byte("\n")) {
		return
	}
	var pile []layer
	seen := map[string]bool{}
	now := text
	for _, w := range wishes {
		aim, err := d.aim(w)
		if err != nil || w.Absent || seen[strings.ToLower(aim.key)] || !unambiguous(d, text, w) || !hasBlock(d, text, aim) {
			continue
		}
		if out, receipt := putLaws(t, d, now, w); receipt != nil {
			seen[strings.ToLower(aim.key)] = true
			now, pile = out, append(pile, layer{w, receipt})
		}
	}
	top := now
	stranger := []byte("# a stranger was here" + ending(text, len(text)))
	start := textStart(now)
	now = apply(now, splice{At: start, End: start, With: stranger})
	for _, i := range rapid.Permutation(indices(len(pile))).Draw(t, "order") {
		now = d.Peel(now, pile[i].w, pile[i].receipt)
	}
	if rest := bytes.Replace(now, stranger, nil, 1); len(rest) == len(now) || !bytes.Equal(rest, text) {
		t.Fatalf("in any order, %d wishes off again: %q\nwant %q\nfrom %q", len(pile), now, text, top)
	}
}

func hasBlock(d *dialect, text []byte, aim target) bool {
	s, err := d.read(text, aim)
	return err == nil && d.home(s, aim, nil) >= 0
}

func indices(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

// pileLaws puts several wishes on a text, with a stranger's line between, and takes them
// off, newest first or in any order.
func pileLaws(t *rapid.T, f Format, text []byte, wishes []Wish) {
	t.Helper()
	var pile []layer
	now := text
	for _, w := range wishes {
		if out, receipt := putLaws(t, f, now, w); receipt != nil {
			now, pile = out, append(pile, layer{w, receipt})
		}
	}
	top := now
	for i := len(pile) - 1; i >= 0; i-- {
		now = f.Peel(now, pile[i].w, pile[i].receipt)
	}
	if !bytes.Equal(now, text) {
		t.Fatalf("%d wishes off again: %q\nwant %q\nfrom %q", len(pile), now, text, top)
	}
	stranger := []byte("# a stranger was here" + ending(text, len(text)))
	start := textStart(top)
	now = apply(top, splice{At: start, End: start, With: stranger})
	for i := len(pile) - 1; i >= 0; i-- {
		now = f.Peel(now, pile[i].w, pile[i].receipt)
	}
	rest := bytes.Replace(now, stranger, nil, 1)
	same := bytes.Equal(rest, text)
	if !bytes.HasSuffix(text, []byte("\n")) { // a line put back needs an ending if it is not the last
		same = strings.TrimRight(string(rest), "\r\n") == strings.TrimRight(string(text), "\r\n")
	}
	if len(rest) == len(now) || !same {
		t.Fatalf("%d wishes off again, with a stranger's line: %q\nwant %q\nfrom %q", len(pile), now, text, top)
	}
}

// realFiles are the regular files of this machine and of the booted host's tree under some
// folders, that a test takes; with sizes that an editor of lines meets.
func realFiles(t *testing.T, take func(path string) bool, folders ...string) []string {
	t.Helper()
	roots := []string{""}
	cache, err := os.UserCacheDir()
	if err == nil {
		trees, _ := filepath.Glob(filepath.Join(cache, "golem-e2e", "*", "etc"))
		for _, tree := range trees {
			roots = append(roots, filepath.Dir(tree))
		}
	}
	if len(roots) == 1 {
		t.Log("no tree of a Debian host in the user's cache: this machine's files alone")
	}
	var found []string
	for _, root := range roots {
		for _, folder := range folders {
			dir := root + folder
			if _, err := os.Stat(dir); err != nil {
				t.Logf("%s is not here: skipped", dir)
				continue
			}
			_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
				if err != nil || !e.Type().IsRegular() || !take(path) {
					return nil
				}
				if info, err := e.Info(); err == nil && info.Size() < 64<<10 {
					found = append(found, path)
				}
				return nil
			})
		}
	}
	return found
}

// lawsOnReal runs the laws over real files: for each, wishes about keys that are there and
// about one that is not.
func lawsOnReal(t *testing.T, d *dialect, files []string, absentKey func(s *sheet, r *row) []Step) {
	t.Helper()
	edits, refused, unread := 0, 0, 0
	for n, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		s, err := d.read(text, target{})
		if err != nil {
			unread++
			continue
		}
		for _, w := range realWishes(s, n, absentKey) {
			out, receipt := putLaws(named{t, path}, d, text, w)
			if receipt == nil {
				refused++
				continue
			}
			edits++
			changedLaws(named{t, path}, d, text, out, w, receipt, n*7)
		}
	}
	t.Logf("%d files, %d edits put and taken off, %d refused or true already, %d files not of this format", len(files), edits, refused, unread)
	if len(files) > 0 && edits == 0 {
		t.Fatal("not one edit was made")
	}
}

// named is a test that names the file it is about.
type named struct {
	*testing.T
	path string
}

func (n named) Fatalf(format string, args ...any) {
	n.T.Helper()
	n.T.Errorf("%s: "+format, append([]any{n.path}, args...)...)
	n.T.FailNow()
}

// realWishes are wishes about some pairs of a sheet.
func realWishes(s *sheet, n int, absentKey func(s *sheet, r *row) []Step) []Wish {
	var pairs []*row
	for i := range s.rows {
		if s.rows[i].kind == pairRow {
			pairs = append(pairs, &s.rows[i])
		}
	}
	if len(pairs) == 0 {
		return []Wish{{Steps: absentKey(s, nil), Value: "golem"}}
	}
	var wishes []Wish
	for _, k := range []int{0, n % len(pairs), len(pairs) - 1} {
		steps := pathOf(s, pairs[k])
		if len(absentKey(s, nil)) == 1 && steps[0].Name == "" {
			steps = steps[1:]
		}
		wishes = append(wishes,
			Wish{Steps: steps, Value: fmt.Sprintf("golem-%d", n)},
			Wish{Steps: steps, Value: "golem", Member: true},
			Wish{Steps: steps, Absent: true},
			Wish{Steps: absentKey(s, pairs[k]), Value: json.Number("42")},
		)
	}
	return wishes
}

// pathOf is the key of a row as a scroll writes it.
func pathOf(s *sheet, r *row) []Step {
	return []Step{{Name: s.blocks[r.block].name}, {Name: r.key}}
}
