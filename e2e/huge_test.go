package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Most memory that golem may hold, however large a file is.
const mostMemory = 64 << 20

func TestReport19AHugeFileStreams(t *testing.T) {
	t.Parallel()
	size := int64(300 << 20)
	if os.Getenv("GOLEM_SOAK") != "" {
		size = 3 << 30
	}
	b := newBox(t)
	var free unix.Statfs_t
	b.must(unix.Statfs(b.dir, &free))
	if int64(free.Bavail)*free.Bsize < 6*size {
		t.Skipf("%s has no room for five copies of %d bytes", b.dir, size)
	}
	b.must(os.MkdirAll(b.tree+"/srv", 0o755))
	found, source := b.tree+"/srv/image", filepath.Join(b.dir, "source.img")
	sparse(t, found, size)
	sparse(t, source, size+4096)
	before := b.print()

	// It is the found target and the source at once.
	b.declare("file \"/srv/image\" {\n  source = \"source.img\"\n}\n")
	for _, args := range [][]string{
		{"plan", b.scroll},
		{"apply", "--auto-approve", b.scroll},
		{"plan", "--detailed-exitcode", b.scroll},
		{"destroy", "--auto-approve", b.scroll},
		{"plan", "--out", filepath.Join(b.dir, "huge.plan"), b.scroll},
		{"apply", filepath.Join(b.dir, "huge.plan")},
		{"destroy", "--auto-approve", b.scroll},
	} {
		cmd := b.command(args...)
		a := b.finish(cmd)
		if a.code != 0 {
			t.Fatalf("golem %v: exit %d\n%s%s", args, a.code, a.stdout, a.stderr)
		}
		if rss := maxRSS(cmd); rss > max(mostMemory, ownPeak()) {
			t.Errorf("golem %v held %d MiB", args, rss>>20)
		}
		if strings.Contains(a.stdout, "\n      -") || strings.Contains(a.stdout, "\n      +") {
			t.Errorf("golem %v shows a diff:\n%.500s", args, a.stdout)
		}
	}
	b.same("after destroy", before)

	// An edit of it is refused.
	b.declare("line \"x\" {\n  path = \"/srv/image\"\n  line = \"x\"\n}\n")
	says(t, b.want(1, "plan", b.scroll).stderr, "too large to be edited")
	b.same("after the refusal", before)
}
