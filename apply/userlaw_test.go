package apply_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"golem/apply"
	"golem/plan"
	"golem/reconcilers"
	"golem/reconcilers/fake"
	"golem/scrolls"
	"golem/state"
)

// A userHost is a law host whose accounts fake tools keep.
type userHost struct {
	*lawHost
	a *fake.Accounts
}

func newUserHost(t tester) *userHost {
	if os.Geteuid() != 0 {
		panic("only root gives files to others")
	}
	h := &userHost{lawHost: newLawHost(t)}
	h.a = &fake.Accounts{Root: h.root}
	if err := errors.Join(h.a.Boot(), os.Mkdir(h.root+"/srv", 0o755)); err != nil {
		t.Fatal(err)
	}
	h.arrange = func(host *reconcilers.Host) {
		host.Booted = true
		host.Exec = func(_ context.Context, c reconcilers.Command) (reconcilers.Output, error) {
			did, ok, err := h.a.Run(c.Argv...)
			out := reconcilers.Output{Stdout: []byte(did.Out), Stderr: []byte(did.Err)}
			if !ok {
				err = fmt.Errorf("run %s: no such program", c.Argv[0])
			} else if err == nil && did.Code != 0 {
				err = &reconcilers.CommandError{Argv: c.Argv, Code: did.Code, Said: did.Err, Err: fmt.Errorf("exit status %d", did.Code)}
			}
			return out, err
		}
	}
	return h
}

// userLaw tries a law on random hosts.
func userLaw(t *testing.T, law func(t *rapid.T)) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root gives files to others")
	}
	unitLaw(t, law)
}

// print is the fingerprint, without the times of what the tools rewrite, which tell their
// text instead.
func (h *userHost) print(t tester) map[string]string {
	prints := h.fingerprint(t, true)
	for name, text := range prints {
		if accountFile.MatchString(name) {
			content, err := os.ReadFile(h.root + name)
			if err != nil {
				t.Fatal(err)
			}
			prints[name] = clockTime.ReplaceAllString(text, "") + "\n" + string(content)
		}
	}
	return prints
}

var (
	accountFile = regexp.MustCompile(`^/etc/(passwd|shadow|group|gshadow|subuid|subgid)$`)
	clockTime   = regexp.MustCompile(` mtime [0-9]+`)
)

const lawKeyText = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIExample "

// drawUsers draws who was there before: users by hand, some in groups, with a home or not.
func drawUsers(t *rapid.T) func(h *userHost) error {
	type found struct {
		name, groups, keys string
		home               bool
	}
	var all []found
	for _, name := range []string{"ada", "bob"} {
		if rapid.Bool().Draw(t, name) {
			all = append(all, found{
				name, rapid.SampledFrom([]string{"", "sudo", "sudo,users"}).Draw(t, "groups of "+name),
				rapid.SampledFrom([]string{"none", "", "# no end", lawKeyText + "hand\n"}).Draw(t, "keys of "+name), rapid.Bool().Draw(t, "home of "+name),
			})
		}
	}
	crew := rapid.Bool().Draw(t, "crew")
	return func(h *userHost) error {
		var err error
		do := func(argv ...string) {
			a, _, failed := h.a.Run(argv...)
			if err = errors.Join(err, failed); a.Code != 0 {
				err = errors.Join(err, errors.New(a.Err))
			}
		}
		if crew {
			do("groupadd", "--gid", "700", "crew")
		}
		for i, f := range all {
			id := fmt.Sprint(600 + i)
			do("groupadd", "--gid", id, f.name)
			do("useradd", "--uid", id, "--gid", f.name, "--home-dir", "/home/"+f.name, "--shell", "/bin/sh", "--groups", f.groups, f.name)
			home := h.root + "/home/" + f.name
			if f.home {
				err = errors.Join(err, os.Mkdir(home, 0o755), os.Chown(home, 600+i, 600+i))
				if f.keys != "none" {
					err = errors.Join(err, os.Mkdir(home+"/.ssh", 0o700), os.WriteFile(home+"/.ssh/authorized_keys", []byte(f.keys), 0o600), os.Chown(home+"/.ssh", 600+i, 600+i))
				}
			}
		}
		return err
	}
}

// drawUserScroll draws users, groups and files that belong to them, in one leaf or two.
func drawUserScroll(t *rapid.T) *scrolls.Scroll {
	one, two := leafOf("one"), leafOf("two")
	add := func(g *scrolls.Glyph) {
		leaf := one
		if rapid.Bool().Draw(t, "leaf of "+string(g.Key)) {
			leaf = two
		}
		g.Leaf = leaf.Path
		leaf.Glyphs = append(leaf.Glyphs, g)
	}
	groups := []any{"sudo", "users"}
	if rapid.Bool().Draw(t, "declares crew") {
		g := glyph("group", scrolls.Attrs{"name": "crew"})
		g.Leaf = one.Path
		one.Glyphs = append(one.Glyphs, g)
		groups = append(groups, "crew")
	}
	var there []any
	for i, name := range []string{"ada", "bob", "cat", "dan"} {
		if rapid.IntRange(0, 2).Draw(t, "declares "+name) == 0 {
			continue
		}
		there = append(there, name)
		add(glyph("user", drawUserAttrs(t, name, 600+i, groups)))
	}
	for _, p := range []string{"/srv/x", "/srv/deep/y", "/home/ada/notes", "/home/cat/.profile", "/home/cat/.config/deep/z"} {
		// What stands in the place of the skeleton's goes with its user: it would be found
		// otherwise if it came before.
		if p == "/home/cat/.profile" && !slices.Contains(there, any("cat")) {
			continue
		}
		if rapid.IntRange(0, 2).Draw(t, p) == 0 {
			a := scrolls.Attrs{"path": p, "content": rapid.SampledFrom([]string{"", "x\n"}).Draw(t, "content")}
			if len(there) > 0 && rapid.Bool().Draw(t, "owned") {
				a["owner"] = rapid.SampledFrom(there).Draw(t, "owner")
			}
			if rapid.Bool().Draw(t, "grouped") {
				a["group"] = rapid.SampledFrom(groups).Draw(t, "group")
			}
			g := glyph("file", a)
			g.Leaf = two.Path
			two.Glyphs = append(two.Glyphs, g)
		}
	}
	leaves := slices.DeleteFunc([]*scrolls.Leaf{one, two}, func(l *scrolls.Leaf) bool { return len(l.Glyphs) == 0 })
	return scrollOf(leaves...)
}

func drawUserAttrs(t *rapid.T, name string, uid int, groups []any) scrolls.Attrs {
	a := scrolls.Attrs{"name": name, "uid": json.Number(fmt.Sprint(uid))}
	maybe := func(attr string, values ...any) {
		if i := rapid.IntRange(-len(values), len(values)-1).Draw(t, name+" "+attr); i >= 0 {
			a[attr] = values[i]
		}
	}
	maybe("comment", "one", "two")
	maybe("shell", "/bin/sh", "/bin/bash")
	maybe("groups", []any{}, groups[:1], groups[1:], groups)
	if a["groups"] != nil {
		maybe("exclusive", true)
	}
	maybe("expires", "2031-12-31")
	maybe("locked", true)
	maybe("password", "$6$salt$hash")
	if name == "dan" {
		a["home"] = "/srv/deep/homes/dan" // below what golem makes on the way
	}
	if name == "cat" { // whose home golem makes
		maybe("authorized_keys", []any{lawKeyText + "one"}, []any{lawKeyText + "one", lawKeyText + "two"})
	}
	return a
}

// run applies a scroll; what is refused, or rolled back, must leave no trace.
func (h *userHost) run(t *rapid.T, s *scrolls.Scroll) bool {
	t.Logf("apply %s", describe(s))
	was := h.print(t)
	r, err := h.apply(s, "run")
	var wrong *scrolls.Diagnostics
	switch {
	case errors.As(err, &wrong):
		if diff := compare(was, h.print(t)); diff != "" {
			t.Fatalf("refused, and changed:\n%v\n%s", err, diff)
		}
		return false
	case err != nil || r.Partial():
		t.Fatalf("%v %+v\n%s", err, failures(r), planText(t, r.Plan))
	}
	if again, err := h.apply(s, "run"); err != nil || !again.Plan.Empty() {
		t.Fatalf("a second run finds something to do: %v\n%s", err, planText(t, again.Plan))
	}
	return true
}

func (h *userHost) same(t tester, what string, want map[string]string) {
	if diff := compare(want, h.print(t)); diff != "" {
		t.Fatalf("%s:\n%s", what, diff)
	}
}

func TestLawUsersExactReturn(t *testing.T) {
	userLaw(t, func(t *rapid.T) {
		h := newUserHost(t)
		defer h.remove()
		if err := drawUsers(t)(h); err != nil {
			t.Fatal(err)
		}
		found := h.print(t)
		for range rapid.IntRange(1, 3).Draw(t, "runs") {
			h.run(t, drawUserScroll(t))
		}
		h.run(t, nil)
		h.same(t, "destroy did not give the host back", found)
		h.check(t)
	})
}

func TestLawUsersDependOnTheLastScrollAlone(t *testing.T) {
	userLaw(t, func(t *rapid.T) {
		before := drawUsers(t)
		a, b := newUserHost(t), newUserHost(t)
		defer a.remove()
		defer b.remove()
		if err := errors.Join(before(a), before(b)); err != nil {
			t.Fatal(err)
		}
		for range rapid.IntRange(1, 2).Draw(t, "runs") {
			a.run(t, drawUserScroll(t))
		}
		last := drawUserScroll(t)
		if !a.run(t, last) || !b.run(t, last) {
			t.Skip("refused")
		}
		if diff := compare(anyOrder(b.print(t)), anyOrder(a.print(t))); diff != "" {
			t.Fatalf("what came before it shows:\n%s", diff)
		}
	})
}

// anyOrder is a fingerprint in which lines and members of the account files have no order:
// who came first stands first.
func anyOrder(prints map[string]string) map[string]string {
	for name, text := range prints {
		switch {
		case accountFile.MatchString(name):
			lines := strings.Split(text, "\n")[1:]
			for i, line := range lines {
				if f := strings.Split(line, ":"); len(f) == 4 {
					list := strings.Split(f[3], ",")
					slices.Sort(list)
					lines[i] = strings.Join(append(f[:3], strings.Join(list, ",")), ":")
				}
			}
			slices.Sort(lines)
			prints[name] = strings.Join(lines, "\n")
		default:
			prints[name] = clockTime.ReplaceAllString(text, "")
		}
	}
	return prints
}

// What somebody does to a user beside golem stays when golem's part goes.
func TestLawUsersHumansBetween(t *testing.T) {
	userLaw(t, func(t *rapid.T) {
		h := newUserHost(t)
		defer h.remove()
		before := drawUsers(t)
		if err := before(h); err != nil {
			t.Fatal(err)
		}
		twin := newUserHost(t)
		defer twin.remove()
		if err := before(twin); err != nil {
			t.Fatal(err)
		}
		if !h.run(t, drawUserScroll(t)) {
			t.Skip("refused")
		}
		for _, host := range []*userHost{h, twin} {
			for _, argv := range [][]string{{"groupadd", "--gid", "900", "theirs"}, {"useradd", "--system", "--uid", "900", "--gid", "theirs", "eve"}, {"gpasswd", "--add", "eve", "sudo"}, {"gpasswd", "--add", "root", "theirs"}} {
				if a, _, err := host.a.Run(argv...); err != nil || a.Code != 0 {
					t.Fatal(a.Err, err)
				}
			}
		}
		h.run(t, drawUserScroll(t))
		h.run(t, nil)
		if diff := compare(anyOrder(twin.print(t)), anyOrder(h.print(t))); diff != "" {
			t.Fatalf("a human's part is gone, or golem's is not:\n%s", diff)
		}
	})
}

// killed applies a scroll with a golem that dies at its n-th change, or at the n-th file
// that a tool writes, with the tool; or whose tool dies there alone. It says where; "" if
// the run ended before.
func (h *userHost) killed(t *rapid.T, s *scrolls.Scroll, n int, way string) (at string) {
	host, err := reconcilers.OpenHost(h.root)
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close()
	h.arrange(host)
	calls, armed := 0, false
	strike := func(what string) {
		if calls++; armed && calls == n {
			at = way + ": " + what
			panic(dead{what})
		}
	}
	so := state.Options{Root: h.root}
	if way != "tool" {
		host.Fault = func(op, path string) error { strike(op + " " + path); return nil }
		so.Fault = func(op string) error { strike("journal " + op); return nil }
		h.a.Step = func(file string) error { strike("tool " + file); return nil }
	} else {
		h.a.Step = func(file string) error {
			if calls++; calls == n {
				at = way + ": " + file
				return errors.New("signal: killed")
			}
			return nil
		}
	}
	journal, err := state.Open(filepath.Join(h.dir, "journal", "planroom.db"), so)
	if err != nil {
		t.Fatal(err)
	}
	calls, armed = 0, true
	defer func() {
		armed, h.a.Step = false, nil
		why := recover()
		if _, ours := why.(dead); why != nil && !ours {
			panic(why)
		}
		_ = journal.Close() // as the kernel does
	}()
	_, _ = apply.Run(context.Background(), apply.Options{
		Scroll: s, Lineage: "run", Journal: journal, Host: host, HostName: "law", Destroy: s == nil,
		Approve: func(*plan.Plan) (bool, error) { return true, nil },
	})
	return at
}

func TestLawUsersCrash(t *testing.T) {
	userLaw(t, func(t *rapid.T) {
		h := newUserHost(t)
		defer h.remove()
		if err := drawUsers(t)(h); err != nil {
			t.Fatal(err)
		}
		found := h.print(t)
		h.run(t, drawUserScroll(t))
		second := drawUserScroll(t)
		if rapid.IntRange(0, 2).Draw(t, "destroy") == 0 {
			second = nil
		}
		at := h.killed(t, second, rapid.IntRange(1, 60).Draw(t, "n"), rapid.SampledFrom([]string{"golem", "tool"}).Draw(t, "way"))
		t.Logf("%s: killed at %s", describe(second), at)
		h.run(t, second)
		h.run(t, nil)
		h.same(t, "destroy after "+at+" did not give the host back", found)
		h.check(t)
	})
}

// A failure at every single change leaves a leaf as it was, or as it is to be.
func TestLawUsersFailure(t *testing.T) {
	userLaw(t, func(t *rapid.T) {
		h := newUserHost(t)
		defer h.remove()
		if err := drawUsers(t)(h); err != nil {
			t.Fatal(err)
		}
		found := h.print(t)
		h.run(t, drawUserScroll(t))
		next := drawUserScroll(t)
		for _, leaf := range next.Leaves {
			leaf.Policy.Retry.MaxAttempts = 1
		}
		calls, n := 0, rapid.IntRange(1, 60).Draw(t, "n")
		fault := rapid.SampledFrom([]error{unix.EIO, unix.ENOSPC}).Draw(t, "fault")
		r, err := h.applyWith(next, "run", func(op, path string) error {
			if calls++; calls == n && !strings.HasPrefix(op, "journal") {
				t.Logf("%v at %s %s", fault, op, path)
				return fault
			}
			return nil
		})
		t.Logf("%v %+v", err, failures(r))
		h.run(t, next)
		h.run(t, nil)
		h.same(t, "destroy did not give the host back", found)
		h.check(t)
	})
}

// A user that waits for the last wave stays where its leaf failed.
func TestUserOfALeafThatFailedStays(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root gives files to others")
	}
	h := newUserHost(t)
	defer h.remove()
	user := glyph("user", scrolls.Attrs{"name": "ada"})
	owned := glyph("file", scrolls.Attrs{"path": "/srv/hers", "content": "x", "owner": "ada"})
	if _, err := h.apply(scrollOf(leafOf("accounts", user), leafOf("files", owned)), "run"); err != nil {
		t.Fatal(err)
	}
	next := leafOf("accounts", fileGlyph("/srv/other", "x"))
	next.Policy.Retry.MaxAttempts = 1
	r, err := h.applyWith(scrollOf(next, leafOf("files", fileGlyph("/srv/more", "x"))), "run", func(op, path string) error {
		if path == "/srv/other" {
			return unix.EIO
		}
		return nil
	})
	if err != nil || !r.Partial() {
		t.Fatalf("%v %s", err, r.Outcome)
	}
	if !strings.Contains(planText(t, r.Plan), "user:ada") {
		t.Fatalf("the plan does not have ada go:\n%s", planText(t, r.Plan))
	}
	passwd, err := os.ReadFile(h.root + "/etc/passwd")
	if err != nil || !strings.Contains(string(passwd), "ada:") {
		t.Fatalf("ada is gone, though her leaf failed: %v\n%s", err, passwd)
	}
	if _, err := h.apply(nil, "run"); err != nil {
		t.Fatal(err)
	}
	if passwd, err = os.ReadFile(h.root + "/etc/passwd"); err != nil || strings.Contains(string(passwd), "ada:") {
		t.Fatalf("ada is still there: %v\n%s", err, passwd)
	}
}
