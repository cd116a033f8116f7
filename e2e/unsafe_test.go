package e2e

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// A run by root never reaches through what another user could plant.
func TestUnsafePathsAreRefused(t *testing.T) {
	t.Parallel()
	asRoot(t, "give files to others")
	b := newBox(t)
	b.write("tree/home/ada/mine", "ada's\n")
	b.write("tree/etc/shadow", "root's\n")
	b.write("tree/srv/open/x", "x\n")
	b.must(os.Chmod(b.tree+"/srv/open", 0o777))
	b.must(os.MkdirAll(b.tree+"/tmp", 0o755))
	b.must(os.Chmod(b.tree+"/tmp", 0o777|os.ModeSticky))
	b.must(os.Chown(b.tree+"/home/ada", 1000, 1000))
	b.must(os.Chown(b.tree+"/home/ada/mine", 1000, 1000))
	b.must(os.Symlink("../../etc/shadow", b.tree+"/home/ada/rc"))
	b.must(os.Symlink("../../etc", b.tree+"/home/ada/dir"))
	b.must(exec.Command("cp", b.tree+"/etc/shadow", b.tree+"/home/ada/third").Run())
	b.must(os.Chown(b.tree+"/home/ada/third", 4242, 4242))
	before := b.print()
	for name, scroll := range map[string]string{
		"below a world-writable directory":       "file \"/srv/open/y\" {\n  content = \"y\\n\"\n}\n",
		"deeper below it":                        "file \"/srv/open/a/b\" {\n  content = \"y\\n\"\n}\n",
		"an edit below it":                       "line \"x\" {\n  path = \"/srv/open/x\"\n  line = \"y\"\n}\n",
		"an edit through a link in ada's home":   "line \"x\" {\n  path = \"/home/ada/rc\"\n  line = \"y\"\n}\n",
		"a followed link in ada's home":          "file \"/home/ada/rc\" {\n  content = \"y\\n\"\n  follow = true\n}\n",
		"below a linked directory in ada's home": "file \"/home/ada/dir/passwd\" {\n  content = \"y\\n\"\n}\n",
		"a third user's file in ada's home":      "file \"/home/ada/third\" {\n  content = \"y\\n\"\n}\n",
	} {
		b.declare(scroll)
		if a := b.run("plan", b.scroll); a.code != 1 || !strings.Contains(a.stderr, "site.hcl line") {
			t.Errorf("%s: plan exits %d\n%s%s", name, a.code, a.stdout, a.stderr)
		}
		if a := b.run("apply", "--auto-approve", b.scroll); a.code != 1 {
			t.Errorf("%s: apply exits %d\n%s%s", name, a.code, a.stdout, a.stderr)
		}
		b.same(name, before)
	}

	// Ada's own files, and a world-writable directory with the sticky bit, are fine.
	b.declare("file \"/home/ada/mine\" {\n  content = \"y\\n\"\n}\nfile \"/home/ada/new\" {\n  content = \"y\\n\"\n}\nfile \"/tmp/y\" {\n  content = \"y\\n\"\n}\n")
	b.apply()
	b.destroy()
	b.same("after destroy", before)
}
