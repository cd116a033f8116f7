package apply_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"golem/scrolls"
)

// access is a grant to a user by number.
func access(path, who, perms string, attrs ...any) *scrolls.Glyph {
	what, id, _ := strings.Cut(who, ":")
	a := scrolls.Attrs{"path": path, what: id, "perms": perms}
	for i := 0; i+1 < len(attrs); i += 2 {
		a[attrs[i].(string)] = attrs[i+1]
	}
	return glyph("access", a)
}

// drawGrants draws a scroll of grants on /d, what is in it and what golem declares there, in
// any order and in two leaves.
func drawGrants(t *rapid.T) *scrolls.Scroll {
	leaves := []*scrolls.Leaf{leafOf("one"), leafOf("two")}
	var all []*scrolls.Glyph
	maybe := func(name string, g func() *scrolls.Glyph) {
		if rapid.Bool().Draw(t, name) {
			all = append(all, g())
		}
	}
	mode := func(name string, a scrolls.Attrs) scrolls.Attrs {
		if digits := rapid.SampledFrom([]string{"", "0700", "0640", "0775"}).Draw(t, name+" mode"); digits != "" {
			a["mode"] = digits
		}
		return a
	}
	perms := rapid.SampledFrom([]string{"r", "rx", "rwx", "w"})
	maybe("directory", func() *scrolls.Glyph { return glyph("directory", mode("d", scrolls.Attrs{"path": "/d"})) })
	maybe("file", func() *scrolls.Glyph {
		return glyph("file", mode("it", scrolls.Attrs{"path": "/d/it", "content": rapid.SampledFrom([]string{"it", "x", "y"}).Draw(t, "content")}))
	})
	maybe("line", func() *scrolls.Glyph { return glyph("line", scrolls.Attrs{"path": "/d/in/deep", "line": "more"}) })
	for _, who := range []string{"user:1001", "user:1002", "group:1001"} {
		maybe(who+" on /d", func() *scrolls.Glyph {
			return access("/d", who, perms.Draw(t, "perms"), "default", rapid.Bool().Draw(t, "default"), "recursive", rapid.Bool().Draw(t, "recursive"))
		})
		maybe(who+" on /d/it", func() *scrolls.Glyph { return access("/d/it", who, perms.Draw(t, "perms")) })
	}
	all = slices.DeleteFunc(all, func(g *scrolls.Glyph) bool { // two grants must not be about one path
		return g.Kind == "access" && g.Attrs["path"] == "/d/it" && slices.ContainsFunc(all, func(o *scrolls.Glyph) bool {
			return o.Kind == "access" && o.Attrs["recursive"] == true && o.Attrs["user"] == g.Attrs["user"] && o.Attrs["group"] == g.Attrs["group"]
		})
	})
	if len(all) > 0 {
		all = rapid.Permutation(all).Draw(t, "order")
	}
	for _, g := range all {
		leaf := leaves[rapid.IntRange(0, 1).Draw(t, "leaf of "+string(g.Key))]
		g.Leaf = leaf.Path
		leaf.Glyphs = append(leaf.Glyphs, g)
	}
	return scrollOf(slices.DeleteFunc(leaves, func(l *scrolls.Leaf) bool { return len(l.Glyphs) == 0 })...)
}

// listOf is an ACL as its attribute has it: entries of tag, permissions and id.
func listOf(entries ...[3]uint32) []byte {
	data := binary.LittleEndian.AppendUint32(nil, 2)
	for _, e := range entries {
		data = binary.LittleEndian.AppendUint16(data, uint16(e[0]))
		data = binary.LittleEndian.AppendUint16(data, uint16(e[1]))
		data = binary.LittleEndian.AppendUint32(data, e[2])
	}
	return data
}

const noOne = ^uint32(0)

// drawLists draws a found list, of the file system's own making, or with entries and any mask.
func drawLists(t *rapid.T) []byte {
	perm := rapid.Uint32Range(0, 7)
	list := [][3]uint32{{1, perm.Draw(t, "user"), noOne}}
	for _, id := range []uint32{1001, 1003} {
		if rapid.Bool().Draw(t, fmt.Sprint("entry of ", id)) {
			list = append(list, [3]uint32{2, perm.Draw(t, "perm"), id})
		}
	}
	group := perm.Draw(t, "group")
	list = append(list, [3]uint32{4, group, noOne})
	if len(list) > 2 {
		mask := group
		for _, e := range list[1:] {
			mask |= e[1]
		}
		if rapid.Bool().Draw(t, "odd mask") {
			mask = perm.Draw(t, "mask")
		}
		list = append(list, [3]uint32{16, mask, noOne})
	}
	return listOf(append(list, [3]uint32{32, rapid.SampledFrom([]uint32{0, 4, 5}).Draw(t, "other"), noOne})...)
}

// grantHost is a host with a tree whose lists are these.
func grantHost(t tester, lists map[string][]byte) *lawHost {
	h := newLawHost(t)
	err := errors.Join(os.MkdirAll(h.root+"/d/in", 0o755), os.WriteFile(h.root+"/d/it", []byte("it"), 0o644), os.WriteFile(h.root+"/d/in/deep", []byte("deep\n"), 0o644))
	for _, path := range []string{"/d/in", "/d/it", "/d"} {
		if data := lists[path]; data != nil {
			err = errors.Join(err, unix.Setxattr(h.root+path, "system.posix_acl_access", data, 0))
		}
	}
	if data := lists["default"]; data != nil {
		err = errors.Join(err, unix.Setxattr(h.root+"/d", "system.posix_acl_default", data, 0))
	}
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func drawGrantHost(t *rapid.T) map[string][]byte {
	lists := map[string][]byte{}
	for _, path := range []string{"/d", "/d/it", "/d/in"} {
		lists[path] = drawLists(t)
	}
	if rapid.Bool().Draw(t, "default") {
		lists["default"] = drawLists(t)
	}
	return lists
}

// grants applies a scroll, and once more, which has to find nothing to do.
func (h *lawHost) grants(t *rapid.T, s *scrolls.Scroll) {
	if s != nil && len(s.Leaves) == 0 {
		s = nil
	}
	t.Logf("apply %s", describe(s))
	h.mustApply(t, s)
	if r := h.mustApply(t, s); !r.Plan.Empty() {
		t.Fatalf("a second run finds something to do:\n%s", planText(t, r.Plan))
	}
}

func TestLawGrantsAreTakenBack(t *testing.T) {
	unitLaw(t, func(t *rapid.T) {
		h := grantHost(t, drawGrantHost(t))
		defer h.remove()
		found := h.fingerprint(t, true)
		for range rapid.IntRange(1, 4).Draw(t, "runs") {
			h.grants(t, drawGrants(t))
		}
		h.grants(t, nil)
		if diff := compare(found, h.fingerprint(t, true)); diff != "" {
			t.Fatalf("destroy does not give the host back:\n%s", diff)
		}
		h.check(t)
	})
}

func TestLawGrantsDependOnTheLastScrollAlone(t *testing.T) {
	unitLaw(t, func(t *rapid.T) {
		lists := drawGrantHost(t)
		a, b := grantHost(t, lists), grantHost(t, lists)
		defer a.remove()
		defer b.remove()
		for range rapid.IntRange(1, 3).Draw(t, "runs") {
			a.grants(t, drawGrants(t))
		}
		last := drawGrants(t)
		a.grants(t, last)
		b.grants(t, last)
		if diff := compare(b.fingerprint(t, false), a.fingerprint(t, false)); diff != "" {
			t.Fatalf("the way there shows:\n%s", diff)
		}
	})
}

// Somebody changes modes and lists between the runs: what is declared is repaired, and the
// rest comes to its end.
func TestLawGrantsWithSomebodyInBetween(t *testing.T) {
	unitLaw(t, func(t *rapid.T) {
		h := grantHost(t, drawGrantHost(t))
		defer h.remove()
		for range rapid.IntRange(1, 3).Draw(t, "runs") {
			s := drawGrants(t)
			h.grants(t, s)
			for range rapid.IntRange(0, 3).Draw(t, "acts") {
				path := h.root + rapid.SampledFrom([]string{"/d", "/d/it", "/d/in"}).Draw(t, "path")
				var err error
				switch rapid.SampledFrom([]string{"chmod", "list", "none", "new"}).Draw(t, "act") {
				case "chmod":
					err = os.Chmod(path, os.FileMode(rapid.SampledFrom([]int{0o700, 0o750, 0o775, 0o640}).Draw(t, "to")))
				case "list":
					err = unix.Setxattr(path, "system.posix_acl_access", drawLists(t), 0)
				case "none":
					if err = unix.Removexattr(path, "system.posix_acl_access"); errors.Is(err, unix.ENODATA) {
						err = nil
					}
				default:
					err = os.WriteFile(h.root+"/d/in/new", nil, 0o600)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			h.grants(t, s)
		}
		h.grants(t, nil)
		h.check(t)
	})
}

// A file with a mode and a grant whose whole list somebody took away comes to rest.
func TestAListThatWasTakenAwayIsRepairedOnce(t *testing.T) {
	h := grantHost(t, map[string][]byte{"/d/it": listOf([3]uint32{1, 6, noOne}, [3]uint32{2, 0, 1003}, [3]uint32{4, 1, noOne}, [3]uint32{16, 1, noOne}, [3]uint32{32, 0, noOne})})
	defer h.remove()
	s := scrollOf(leafOf("one", glyph("file", scrolls.Attrs{"path": "/d/it", "content": "it", "mode": "0700"}), access("/d/it", "user:1001", "rx")))
	h.mustApply(t, s)
	if err := unix.Removexattr(h.root+"/d/it", "system.posix_acl_access"); err != nil {
		t.Fatal(err)
	}
	h.mustApply(t, s)
	if r := h.mustApply(t, s); !r.Plan.Empty() {
		t.Fatalf("it does not come to rest:\n%s", planText(t, r.Plan))
	}
}

// grantStory is what an act of the story declares: "access one", "access two", else nothing.
func grantStory(act string) *scrolls.Scroll {
	switch act {
	case "access one":
		return scrollOf(
			leafOf("one", access("/d", "user:1001", "rx", "default", true, "recursive", true), glyph("file", scrolls.Attrs{"path": "/d/it", "content": "one", "mode": "0600"})),
			leafOf("two", access("/d/it", "group:1002", "rw"), access("/d/in", "user:1003", "rwx", "default", true)))
	case "access two":
		return scrollOf(
			leafOf("one", access("/d", "user:1001", "r"), glyph("directory", scrolls.Attrs{"path": "/d", "mode": "0750"})),
			leafOf("two", access("/d/it", "group:1002", "r"), glyph("line", scrolls.Attrs{"path": "/d/it", "line": "two"})))
	}
	return nil
}

var grantActs = []struct {
	name   string
	before []string
	act    string
	least  int
}{
	{"FreshApply", nil, "access one", 14},
	{"ReplaceAndRemove", []string{"access one"}, "access two", 14},
	{"Destroy", []string{"access one", "access two"}, "access none", 10},
}

func stageGrants(t *testing.T, before []string) (h *lawHost, found map[string]string) {
	h = grantHost(t, map[string][]byte{
		"/d":      listOf([3]uint32{1, 7, noOne}, [3]uint32{2, 6, 1001}, [3]uint32{4, 5, noOne}, [3]uint32{16, 4, noOne}, [3]uint32{32, 0, noOne}),
		"/d/in":   listOf([3]uint32{1, 7, noOne}, [3]uint32{4, 1, noOne}, [3]uint32{32, 0, noOne}),
		"default": listOf([3]uint32{1, 7, noOne}, [3]uint32{4, 0, noOne}, [3]uint32{32, 0, noOne}),
	})
	found = h.fingerprint(t, true)
	for _, act := range before {
		if r, err := h.apply(grantStory(act), "crash"); err != nil || r.Partial() {
			t.Fatalf("%s: %v %+v", act, err, failures(r))
		}
	}
	return h, found
}

func (h *lawHost) settlesGrants(t *testing.T, when, act string, want, found map[string]string) {
	t.Helper()
	r, err := h.apply(grantStory(act), "crash")
	if err != nil || r.Partial() {
		t.Fatalf("%s, the next run does not settle: %v %+v", when, err, failures(r))
	}
	if diff := compare(want, h.fingerprint(t, false)); diff != "" {
		t.Fatalf("%s, the next run leaves another host:\n%s", when, diff)
	}
	if r, err := h.apply(nil, "crash"); err != nil || r.Partial() {
		t.Fatalf("%s, destroy: %v %+v", when, err, failures(r))
	}
	if diff := compare(found, h.fingerprint(t, true)); diff != "" {
		t.Fatalf("%s, destroy does not give the host back:\n%s", when, diff)
	}
	h.check(t)
}

// TestGrantsCrashAndFailAtEveryCall kills golem before every single change, and lets every
// one fail: the next run settles, and destroy gives the lists back.
func TestGrantsCrashAndFailAtEveryCall(t *testing.T) {
	t.Parallel()
	for _, a := range grantActs {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			done, _ := stageGrants(t, append(slices.Clone(a.before), a.act))
			want := done.fingerprint(t, false)
			done.remove()
			n := 1
			for ; ; n++ {
				h, found := stageGrants(t, a.before)
				died := h.killed(t, a.act, n)
				if died {
					h.settlesGrants(t, fmt.Sprintf("killed at %d", n), a.act, want, found)
				}
				h.remove()
				if !died {
					break
				}
				h, found = stageGrants(t, a.before)
				was, calls := h.fingerprint(t, false), 0
				r, err := h.applyWith(grantStory(a.act), "crash", func(string, string) error {
					if calls++; calls == n {
						return unix.EIO
					}
					return nil
				})
				when := fmt.Sprintf("failed at %d", n)
				if err == nil && r.Outcome == "rolled_back" {
					if diff := compare(was, h.fingerprint(t, false)); diff != "" {
						t.Fatalf("%s, it is rolled back to another host:\n%s", when, diff)
					}
				}
				h.settlesGrants(t, when, a.act, want, found)
				h.remove()
			}
			if n <= a.least {
				t.Fatalf("only %d changes were counted", n-1)
			}
			t.Logf("%d changes, a kill and a failure at each", n-1)
		})
	}
}
