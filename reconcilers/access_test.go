package reconcilers

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"golem/scrolls"
)

// sampleAccess draws a grant on what drawLists makes.
func sampleAccess(t *rapid.T) scrolls.Attrs {
	a := scrolls.Attrs{
		"path":  rapid.SampledFrom([]string{"/d", "/d/it"}).Draw(t, "path"),
		"perms": rapid.SampledFrom([]string{"r", "rx", "rwx", "w", "rX"}).Draw(t, "perms"),
	}
	a[rapid.SampledFrom([]string{"user", "group"}).Draw(t, "what")] = rapid.SampledFrom([]string{"1001", "1002"}).Draw(t, "who")
	if a["path"] == "/d" {
		a["default"], a["recursive"] = rapid.Bool().Draw(t, "default"), rapid.Bool().Draw(t, "recursive")
	}
	return a
}

// drawACL draws a list: none but the mode's, or some entries and a mask of any width.
func drawACL(t *rapid.T, name string) acl {
	a := modeACL(rapid.SampledFrom([]int{0o700, 0o640, 0o755, 0o770, 0o604}).Draw(t, name+" mode"))
	for _, id := range []uint32{1001, 1003} {
		for _, tag := range []uint16{aclUser, aclGroup} {
			if rapid.IntRange(0, 3).Draw(t, fmt.Sprint(name, tag, id)) == 0 {
				a = a.set(tag, id, rapid.IntRange(0, 7).Draw(t, "perm"))
			}
		}
	}
	mask := a.union()
	if rapid.Bool().Draw(t, name+" odd mask") {
		mask = rapid.IntRange(0, 7).Draw(t, "mask")
	}
	if a.named() || rapid.IntRange(0, 4).Draw(t, "a mask alone") == 0 {
		a = a.set(aclMask, noID, mask)
	}
	return a
}

// drawLists makes a directory with files and another directory in it, each with lists.
func (b *bench) drawLists() {
	must := func(err error) {
		if err != nil {
			b.t.Fatal(err)
		}
	}
	must(os.MkdirAll(b.root+"/d/in", 0o755))
	for _, name := range []string{"/d/it", "/d/in/deep", "/bystander"} {
		must(os.WriteFile(b.root+name, []byte(name), 0o644))
	}
	must(os.Symlink("/bystander", b.root+"/d/link"))
	for _, name := range []string{"/d/in", "/d/it", "/d"} {
		must(unix.Lsetxattr(b.root+name, aclAccess, drawACL(b.t, name).bytes(), 0))
	}
	if rapid.Bool().Draw(b.t, "a default") {
		must(unix.Lsetxattr(b.root+"/d", aclDefault, drawACL(b.t, "default").bytes(), 0))
	}
}

// printLists is a fingerprint of the tree with all lists.
func (b *bench) printLists() string {
	out := b.printFiles()
	err := filepath.WalkDir(b.root, func(p string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		x, err := readXattrs(linkXattrs{p})
		out += fmt.Sprintln(strings.TrimPrefix(p, b.root), x)
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return out
}

// Putting grants on a list and taking them off again, in any order, is nothing; and a mask
// that somebody set in between is respected.
func TestGrantsComeOffAListInAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		was := drawACL(t, "found")
		var all []grant
		a := was
		for _, id := range []uint32{1001, 1002, 1003} {
			for _, tag := range []uint16{aclUser, aclGroup} {
				if rapid.Bool().Draw(t, fmt.Sprint("grant ", tag, id)) {
					g := grant{tag, id, rapid.IntRange(1, 7).Draw(t, "perm"), was.perm(tag, id), was.mask(), ""}
					all = append(all, g)
					if a = a.put(tag, id, g.perm); a.perm(tag, id) != g.perm || g.perm&^a.mask() != 0 {
						t.Fatalf("it has no full effect: %s", a.text(nil))
					}
				}
			}
		}
		if len(all) > 0 {
			all = rapid.Permutation(all).Draw(t, "order")
		}
		for ; len(all) > 0; all = all[1:] {
			a = a.strip(all, all[:1], was.mask())
		}
		if !slices.Equal(a, was) {
			t.Fatalf("was %s\nis  %s", was.text(nil), a.text(nil))
		}
	})
}

func TestAModeSetByHandOutlivesTheGrant(t *testing.T) {
	for _, c := range []struct{ found, chmod, want int }{
		{0o750, 0o770, 0o770}, {0o750, 0o700, 0o700}, {0o755, 0o711, 0o711}, {0o700, 0o700, 0o700},
	} {
		g := grant{aclUser, 1001, 5, -1, -1, ""}
		a := modeACL(c.found).put(g.tag, g.id, g.perm)
		a, err := parseACL(withMode(map[string][]byte{aclAccess: a.bytes()}, c.chmod)[aclAccess])
		if err != nil {
			t.Fatal(err)
		}
		if is := a.strip([]grant{g}, []grant{g}, -1); len(is) != 3 || is.mode(0) != c.want {
			t.Errorf("found %04o, set to %04o: it is %s, want %04o", c.found, c.chmod, is.text(nil), c.want)
		}
	}
}

// A mask that is what golem's entries need, as they say by now, is golem's: another's entry
// gains nothing by it when they go.
func TestAMaskOfAChangedEntryIsNobodyElses(t *testing.T) {
	g := grant{aclUser, 1001, 4, -1, 0, ""}
	beneath := modeACL(0o700).set(aclUser, 1003, 1).set(aclMask, noID, 0)
	changed := beneath.put(g.tag, g.id, 1) // golem wrote 4
	if is := changed.strip([]grant{g}, []grant{g}, 0); !slices.Equal(is, beneath) {
		t.Errorf("it is %s, want %s", is.text(nil), beneath.text(nil))
	}
}

func TestAccessMistakesAreTold(t *testing.T) {
	for _, c := range []struct {
		attrs scrolls.Attrs
		attr  string
		want  string
	}{
		{scrolls.Attrs{"path": "/x", "perms": "r"}, "", "Granted to nobody"},
		{scrolls.Attrs{"path": "/x", "perms": "r", "user": "a", "group": "b"}, "group", "Granted to two"},
		{scrolls.Attrs{"path": "/x", "perms": "rq", "user": "a"}, "perms", "Not permissions"},
		{scrolls.Attrs{"path": "/x", "perms": "", "user": "a"}, "perms", "Not permissions"},
		{scrolls.Attrs{"path": "/x", "perms": "rr", "user": "a"}, "perms", "Not permissions"},
		{scrolls.Attrs{"path": "/x", "perms": "r", "user": ""}, "user", "Not a name"},
		{scrolls.Attrs{"path": "x", "perms": "r", "user": "a"}, "path", "Path is not absolute"},
		{scrolls.Attrs{"path": "/etc", "perms": "r", "user": "a"}, "path", "Path is protected"},
	} {
		problems := accessKind.Check(c.attrs)
		if len(problems) != 1 || problems[0].Summary != c.want || problems[0].Attr != c.attr {
			t.Errorf("%v: %+v, want %q at %q", c.attrs, problems, c.want, c.attr)
		}
	}
}
