package plan_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golem/plan"
	"golem/scrolls"
)

// savedFile is a plan file over one local file, with the key that it is sealed with.
func savedFile(t *testing.T) (string, plan.SealKey) {
	t.Helper()
	dir := t.TempDir()
	src, file := filepath.Join(dir, "src"), filepath.Join(dir, "web.plan")
	if err := os.WriteFile(src, []byte("the bytes"), 0o600); err != nil {
		t.Fatal(err)
	}
	g := &scrolls.Glyph{Kind: "file", Key: "file:/etc/a", Attrs: scrolls.Attrs{"path": "/etc/a"}, Files: map[string]string{"source": src}}
	body := plan.SavedBody{Scroll: &scrolls.Scroll{Name: "web", Leaves: []*scrolls.Leaf{{Path: "web", Glyphs: []*scrolls.Glyph{g}}}}}
	if err := body.Collect(); err == nil || !strings.Contains(err.Error(), "has changed since it was planned") {
		t.Fatalf("bytes that no attribute names are taken: %v", err)
	}
	g.Files["source"] = src
	g.Attrs["source"] = map[string]any{"path": "src", "size": 9, "sha256": sha256Of(t, src)}
	if err := body.Collect(); err != nil {
		t.Fatal(err)
	}
	key, err := plan.NewSealKey()
	if err != nil {
		t.Fatal(err)
	}
	head := plan.SavedHead{Lineage: "web", Host: "one", Machine: "m1", Root: "/", Journal: "j1", View: &plan.View{Name: "web"}, Document: []byte("{}")}
	if err := plan.Save(file, head, body, key); err != nil {
		t.Fatal(err)
	}
	return file, key
}

func sha256Of(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func opened(file string, key plan.SealKey) (*plan.Saved, error) {
	s, err := plan.OpenSaved(file)
	if err == nil {
		err = s.Unseal(key)
	}
	return s, err
}

// No byte of a plan file can be changed, dropped or added without its being said.
func TestAPlanFileTellsThatItWasTouched(t *testing.T) {
	file, key := savedFile(t)
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if st, err := os.Stat(file); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("its mode is %v, %v", st.Mode(), err)
	}
	saved, err := opened(file, key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := saved.Unpack(dir, key); err != nil {
		t.Fatal(err)
	}
	at := saved.Body.Scroll.Leaves[0].Glyphs[0].Files["source"]
	if data, err := os.ReadFile(at); err != nil || string(data) != "the bytes" || filepath.Dir(at) != dir {
		t.Errorf("%s holds %q, %v", at, data, err)
	}
	try := func(what string, data []byte) {
		t.Helper()
		touched := filepath.Join(t.TempDir(), "touched.plan")
		if err := os.WriteFile(touched, data, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := opened(touched, key)
		if says := new(plan.FileError); !errors.As(err, &says) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for i := range whole {
		data := append([]byte{}, whole...)
		data[i] ^= 1
		try("changed", data)
	}
	for n := 0; n < len(whole); n += 7 {
		try("cut short", whole[:n])
	}
	try("longer", append(append([]byte{}, whole...), 'x'))
}

// Another journal's key opens nothing, and the place that a plan was made for is told.
func TestAPlanFileIsOfOnePlace(t *testing.T) {
	file, key := savedFile(t)
	other, err := plan.NewSealKey()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := opened(file, other); err == nil || !strings.Contains(err.Error(), "it is sealed to another journal") {
		t.Errorf("another key: %v", err)
	}
	other.Identity = key.Identity // who can seal to the key, but does not know the journal
	if _, err := opened(file, other); err == nil || !strings.Contains(err.Error(), "it was changed since golem wrote it") {
		t.Errorf("a forger: %v", err)
	}
	saved, err := opened(file, key)
	if err != nil {
		t.Fatal(err)
	}
	if why := saved.Elsewhere("j1", "m1", "/"); len(why) != 0 {
		t.Errorf("at home it says %q", why)
	}
	why := strings.Join(saved.Elsewhere("j2", "m2", "/srv"), "\n")
	for _, want := range []string{`made on another host: one, with machine id "m1", not "m2"`, "made for the root /, not /srv", "made with another journal"} {
		if !strings.Contains(why, want) {
			t.Errorf("it does not say %q: %s", want, why)
		}
	}
}
