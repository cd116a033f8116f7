package apply_test

import (
	"errors"
	"os"
	"testing"

	"golem/scrolls"
)

// A directory that an earlier leaf gives another mode has not moved: the archives that have
// it, too, were planned with that.
func TestAnArchivesDirectoryThatAnEarlierLeafChanges(t *testing.T) {
	h := newLawHost(t)
	defer h.remove()
	if err := errors.Join(os.MkdirAll(h.root+"/srv/app", 0o700), os.Symlink("/etc/hosts", h.root+"/srv/app/conf")); err != nil {
		t.Fatal(err)
	}
	plug := func() *scrolls.Glyph { return archive("/srv/app", "plug.tar.xz", nil) }
	for i, s := range []*scrolls.Scroll{
		scrollOf(leafOf("c", archive("/srv/app", "app-3.zip", nil)), leafOf("b", plug(), glyph("directory", scrolls.Attrs{"path": "/srv/app/lib"}))),
		scrollOf(leafOf("a", plug()), leafOf("c", archive("/new/app", "app-2.tar.gz", nil))),
		nil,
	} {
		if r, err := h.apply(s, "law"); err != nil || r.Partial() {
			t.Fatalf("run %d: %v %+v", i, err, failures(r))
		}
	}
	h.check(t)
}
