package apply_test

import (
	"os"
	"strings"
	"testing"

	"golem/apply"
	"golem/reconcilers/fake"
	"golem/scrolls"
)

// A leaf brings a package that was not there, with configuration and a removal script that
// deletes data, and fails after it.
func TestAPackageThatALeafBroughtGoesWhole(t *testing.T) {
	const conf, data, old = "/etc/app/conf", "/var/lib/app/data", "/var/lib/app/old"
	for _, c := range []struct {
		name, postrm, purge string
		found               bool // data was there before
		gone                bool
	}{
		{name: "nothing in its way", postrm: "rm -rf /var/lib/app\n", gone: true},
		{name: "debhelper's lines", postrm: "# Automatically added by dh_x\nrm -rf /var/lib/app\n# End automatically added section\n", gone: true},
		{name: "a found file in its way", postrm: "rm -rf /var/lib/app\n", found: true},
		{name: "a path that only it knows", postrm: "rm -rf /var/lib/app\nrm -f \"$RET\"\n"},
		{name: "anything in a directory", postrm: "rm -rf /var/lib/app\nrm -f /etc/*.app\n"},
		{name: "not wanted", postrm: "rm -rf /var/lib/app\n", purge: "false"},
		{name: "wanted", postrm: "rm -rf /var/lib/app\nrm -f \"$RET\"\n", purge: "true", gone: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newPkgHost(t)
			defer h.remove()
			h.m.Archive = []*fake.Package{{
				Name: "app", Version: "1.0", Arch: "all", Postrm: c.postrm,
				Conffiles: map[string]string{conf: "shipped\n"}, Makes: map[string]string{data: "made\n"},
			}}
			h.write(t, "/etc/hostname", "law\n")
			if c.found {
				h.write(t, old, "of somebody's\n")
			}
			before := h.print(t)
			attrs := scrolls.Attrs{"name": "app"}
			if c.purge != "" {
				attrs["purge"] = c.purge
			}
			leaf := leafOf("a", glyph("apt", attrs))
			leaf.Policy.Retry.MaxAttempts, leaf.Checks = 1, []*scrolls.Glyph{commandCheck("never")}
			s := scrollOf(leaf)
			r, err := h.apply(s, "law")
			if err != nil || r.Leaves[0].Outcome != apply.RolledBack {
				t.Fatalf("%v, %+v", err, r)
			}
			after := h.print(t)
			if diff := compare(before, after); c.gone && diff != "" {
				t.Errorf("the leaf is not what it was:\n%s", diff)
			}
			if !c.gone && (after["package app"] != "deinstall config-files" || after[conf] != "shipped\n" || after[data] != "made\n") {
				t.Errorf("what is left is %v", after)
			}
			if after[old] != before[old] {
				t.Errorf("what was found is gone: %v", after)
			}
			leaf.Checks = nil
			if r, err = h.apply(s, "law"); err != nil || r.Partial() {
				t.Fatalf("mended: %v, %+v", err, failures(r))
			}
			if now := h.print(t); !strings.HasPrefix(now["package app"], "install installed 1.0") || now[conf] != "shipped\n" {
				t.Errorf("mended, there is %v", now)
			}
		})
	}
}

// write writes a file of the host's.
func (h *pkgHost) write(t tester, path, text string) {
	name := h.root + path
	err := os.MkdirAll(name[:strings.LastIndexByte(name, '/')], 0o755)
	if err == nil {
		err = os.WriteFile(name, []byte(text), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}
