package state

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func write(t *testing.T, path string, data []byte) *os.File {
	t.Helper()
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func hashOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func TestBlobsComeBack(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "planroom.db")
	j := open(t, path, Options{})
	var hashes []string
	var want [][]byte
	for i, size := range []int{0, 1, 300, inlineMax, inlineMax + 1, 3 << 20} {
		data := bytes.Repeat([]byte{byte(i), 7}, size/2+1)[:size]
		src := write(t, filepath.Join(dir, fmt.Sprint("src", i)), data)
		if _, err := src.Seek(1, io.SeekStart); err != nil { // where the reader stands is nothing to it
			t.Fatal(err)
		}
		hash, n, err := j.PutFile(src, "")
		if err != nil || n != int64(size) || hash != hashOf(data) {
			t.Fatalf("put %d bytes: %s, %d, %v", size, hash, n, err)
		}
		if got, err := j.ReadBlob(hash); err != nil || !bytes.Equal(got, data) {
			t.Errorf("read %d bytes before they are committed: %v", size, err)
		}
		hashes, want = append(hashes, hash), append(want, data)
	}
	do(t, j, func(tx *Tx) error {
		hash, err := tx.PutBytes([]byte("in a transaction"))
		hashes, want = append(hashes, hash), append(want, []byte("in a transaction"))
		return errors.Join(err, tx.Keep(&Kept{Path: "/k", Blob: hash}), tx.Keep(&Kept{Path: "/k", Blob: hashes[5], Size: 3 << 20}))
	})
	sound(t, j)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := Read(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for i, hash := range hashes {
		if got, err := r.ReadBlob(hash); err != nil || !bytes.Equal(got, want[i]) {
			t.Errorf("blob of %d bytes: %v", len(want[i]), err)
		}
	}
	if kept, err := r.KeptList(); err != nil || len(kept) != 2 || kept[0].Blob != hashes[6] {
		t.Errorf("kept: %+v, %v", kept, err)
	}
}

func TestBlobsAreDurableBeforeTheyAreNamed(t *testing.T) {
	var ops []string
	j := open(t, filepath.Join(t.TempDir(), "planroom.db"), Options{Fault: func(op string) error { ops = append(ops, op); return nil }})
	big := make([]byte, inlineMax+1)
	hash, err := j.PutBytes(big)
	if err != nil {
		t.Fatal(err)
	}
	run := &Run{Lineage: "web", Command: "apply"}
	s := install(run, "base", "file:/a", "a", nil)
	s.Inverse = json.RawMessage(`{"deep":[{"blob":"` + hash + `"}]}`)
	ops = nil
	begin(t, j, run, s)
	if got := strings.Join(ops, ","); got != "blob sync,commit" {
		t.Errorf("order: %s", got)
	}
	ops = nil
	if _, err := j.PutBytes(big); err != nil || ops != nil {
		t.Errorf("put again: %v, wrote %v", err, ops)
	}
}

func TestStepNeedsItsBytes(t *testing.T) {
	j := open(t, filepath.Join(t.TempDir(), "planroom.db"), Options{})
	run := &Run{Lineage: "web", Command: "apply"}
	never := hashOf([]byte("never put"))
	for _, spoil := range []func(*Step){
		func(s *Step) { s.Inverse = json.RawMessage(`{"blob":"` + never + `"}`) },
		func(s *Step) { s.After.Found = json.RawMessage(`[[{"blob":"` + never + `"}]]`) },
		func(s *Step) { s.After.Layers[0].Inverse = json.RawMessage(`{"x":{"blob":"` + never + `"}}`) },
	} {
		err := j.Do(func(tx *Tx) error {
			if err := tx.Begin(run); err != nil {
				return err
			}
			s := install(run, "base", "file:/a", "a", nil)
			s.Run = run.ID
			spoil(s)
			return tx.Intend([]*Step{s})
		})
		var blob *BlobError
		if !errors.As(err, &blob) || blob.Hash != never {
			t.Errorf("intent without its bytes: %v", err)
		}
	}
	if err := j.Do(func(tx *Tx) error { return tx.Keep(&Kept{Path: "/x", Blob: never}) }); err == nil {
		t.Error("kept without its bytes")
	}
}

func TestPutFileSeesAChange(t *testing.T) {
	dir := t.TempDir()
	j := open(t, filepath.Join(dir, "planroom.db"), Options{})
	for _, size := range []int{10, inlineMax + 10} {
		data := bytes.Repeat([]byte("x"), size)
		src := write(t, filepath.Join(dir, "src"), data)
		other := hashOf([]byte("what was observed"))
		_, _, err := j.PutFile(src, other)
		var changed *ChangedError
		if !errors.As(err, &changed) || changed.Want != other || changed.Have != hashOf(data) {
			t.Errorf("%d bytes: %v", size, err)
		}
		if _, _, err := j.PutFile(src, hashOf(data)); err != nil {
			t.Error(err)
		}
		do(t, j, func(*Tx) error { return nil })
		write(t, filepath.Join(dir, "src"), bytes.Repeat([]byte("y"), size))
		if _, _, err := j.PutFile(src, hashOf(data)); !errors.As(err, &changed) {
			t.Errorf("%d bytes that the journal has, changed on disk: %v", size, err)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "planroom.db.blobs", "tmp-*")); left != nil {
		t.Errorf("left: %v", left)
	}
	sound(t, j)
}

func TestBlobTroubleIsTyped(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "planroom.db")
	j := open(t, path, Options{})
	var hashes []string
	do(t, j, func(tx *Tx) error {
		for i := range 4 {
			hash, err := tx.PutBytes(bytes.Repeat([]byte{byte(i)}, inlineMax+1))
			if err != nil {
				return err
			}
			hashes = append(hashes, hash)
		}
		return nil
	})
	gone, short, flipped, link := j.blobs.file(hashes[0]), j.blobs.file(hashes[1]), j.blobs.file(hashes[2]), j.blobs.file(hashes[3])
	spoilt := errors.Join(os.Remove(gone), os.Truncate(short, 5), os.WriteFile(flipped, make([]byte, inlineMax+1), 0o600),
		os.Remove(link), os.Symlink("/etc/passwd", link), os.WriteFile(filepath.Join(dir, "planroom.db.blobs", "stray"), nil, 0o600))
	if spoilt != nil {
		t.Fatal(spoilt)
	}
	for i, hash := range append(hashes, hashOf(nil), "../../../etc/passwd", "") {
		_, err := j.ReadBlob(hash)
		var blob *BlobError
		if !errors.As(err, &blob) {
			t.Errorf("blob %d: %v", i, err)
		}
	}
	findings, err := j.Check()
	if err != nil {
		t.Fatal(err)
	}
	levels := map[Level]int{}
	for _, f := range findings {
		levels[f.Level]++
	}
	if levels[Damage] != 4 || levels[Litter] != 1 {
		t.Errorf("findings: %+v", findings)
	}
	// Putting them again mends what is missing or short.
	do(t, j, func(tx *Tx) error {
		for i := range 2 {
			if _, err := tx.PutBytes(bytes.Repeat([]byte{byte(i)}, inlineMax+1)); err != nil {
				return err
			}
		}
		return nil
	})
	for _, hash := range hashes[:2] {
		if _, err := j.ReadBlob(hash); err != nil {
			t.Error(err)
		}
	}
}

func TestHalfWrittenBlobsAreSwept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "planroom.db")
	open(t, path, Options{}).Close()
	if err := os.MkdirAll(path+".blobs", 0o700); err != nil {
		t.Fatal(err)
	}
	tmp := filepath.Join(path+".blobs", "tmp-123")
	if err := os.WriteFile(tmp, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	open(t, path, Options{}).Close()
	if _, err := os.Stat(tmp); !os.IsNotExist(err) {
		t.Errorf("half a blob is still there: %v", err)
	}
}
