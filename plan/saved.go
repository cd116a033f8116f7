package plan

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"filippo.io/age"

	"golem/scrolls"
)

// A plan file is three parts: a line that says what it is, which version of the format, and
// how long it is; a line of JSON that anybody may read, with nothing secret in it; and an
// age file with all that applying takes, sealed to a key in the journal. A token from the
// journal inside tells that golem made it, and a hash that the line of JSON is the one that
// it was made with.
const (
	savedMagic   = "golem-plan"
	savedVersion = 1
	savedFirst   = "%s %d %019d\n"
)

// A SavedHead is what anybody may read of a plan file.
type SavedHead struct {
	Golem    string          `json:"golem"` // its version
	Made     string          `json:"made"`
	Command  string          `json:"command"`
	Lineage  string          `json:"lineage"`
	Source   string          `json:"source"`
	Host     string          `json:"host"`
	Machine  string          `json:"machine"`
	Root     string          `json:"root"`
	Journal  string          `json:"journal"` // its id
	Revision int             `json:"revision"`
	View     *View           `json:"view"`
	Document json.RawMessage `json:"document"`
}

// A SavedBody is what applying a saved plan takes.
type SavedBody struct {
	HeadHash string                    `json:"head"`
	Token    string                    `json:"token"`
	Scroll   *scrolls.Scroll           `json:"scroll"` // nil: it is destroyed
	Policies map[string]scrolls.Policy `json:"policies"`
	Digest   string                    `json:"digest"`
	Blind    bool                      `json:"blind"`
	Destroy  bool                      `json:"destroy"`
	Choice   *Choice                   `json:"choice"`
	Prints   []Print                   `json:"prints"`
	Blobs    []SavedBlob               `json:"blobs"`
	// Inputs are what the scroll was loaded with, to see whether it is another now.
	Inputs SavedInputs `json:"inputs"`
}

// SavedInputs are what a scroll was loaded with.
type SavedInputs struct {
	Path     string   `json:"path"` // absolute
	Name     string   `json:"name"`
	Vars     []string `json:"vars"`
	VarFiles []string `json:"var_files"` // absolute
	Environ  []string `json:"environ"`
}

// A SavedBlob is a local file's bytes.
type SavedBlob struct {
	Hash string `json:"hash"`
	Size int64  `json:"size"`

	path string
}

// A SealKey is what plan files of a journal are sealed with: golem's own, and kept in it.
type SealKey struct {
	Identity string `json:"identity"`
	Token    string `json:"token"`
}

// NewSealKey makes a key.
func NewSealKey() (SealKey, error) {
	id, err := age.GenerateX25519Identity()
	if err != nil {
		return SealKey{}, fmt.Errorf("make a key for plan files: %w", err)
	}
	token := make([]byte, 32)
	if _, err := rand.Read(token); err != nil {
		return SealKey{}, fmt.Errorf("make a key for plan files: %w", err)
	}
	return SealKey{id.String(), hex.EncodeToString(token)}, nil
}

// Collect reads into the body which local files the scroll's glyphs are made of. One that
// is not any more what was loaded is an error.
func (b *SavedBody) Collect() error {
	if b.Scroll == nil {
		return nil
	}
	have := map[string]bool{}
	for _, g := range b.Scroll.Glyphs() {
		for name, path := range g.Files {
			hash, size, err := hashFile(path)
			if err != nil {
				return fmt.Errorf("save the plan: %w", err)
			}
			if !mentions(map[string]any(g.Attrs), hash) {
				return fmt.Errorf("save the plan: %s of %s has changed since it was planned", path, g.Key)
			}
			g.Files[name] = hash
			if !have[hash] {
				have[hash] = true
				b.Blobs = append(b.Blobs, SavedBlob{hash, size, path})
			}
		}
	}
	return nil
}

// mentions says whether a value holds a string somewhere.
func mentions(v any, text string) bool {
	switch v := v.(type) {
	case string:
		return v == text
	case map[string]any:
		for _, e := range v {
			if mentions(e, text) {
				return true
			}
		}
	case []any:
		for _, e := range v {
			if mentions(e, text) {
				return true
			}
		}
	}
	return false
}

func hashFile(path string) (string, int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	h := sha256.New()
	size, err := io.Copy(h, f)
	return hex.EncodeToString(h.Sum(nil)), size, err
}

// Save writes a plan file. The file is there whole, or not at all.
func Save(file string, head SavedHead, body SavedBody, key SealKey) error {
	if err := save(file, head, body, key); err != nil {
		return fmt.Errorf("save the plan to %s: %w", file, err)
	}
	return nil
}

func save(file string, head SavedHead, body SavedBody, key SealKey) error {
	if st, err := os.Lstat(file); err == nil && !(st.Mode().IsRegular() && IsSaved(file)) {
		return errors.New("something else is there already, and stays")
	}
	tmp, err := os.CreateTemp(filepath.Dir(file), ".golem-plan-*") // 0600
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	err = writeSaved(tmp, head, body, key)
	if err = errors.Join(err, tmp.Sync(), tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), file)
}

func writeSaved(f *os.File, head SavedHead, body SavedBody, key SealKey) error {
	line, err := json.Marshal(head)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(line)
	body.HeadHash, body.Token = hex.EncodeToString(sum[:]), key.Token
	if _, err := fmt.Fprintf(f, savedFirst+"%s\n", savedMagic, savedVersion, 0, line); err != nil {
		return err
	}
	if err := seal(f, body, key); err != nil {
		return err
	}
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(fmt.Appendf(nil, savedFirst, savedMagic, savedVersion, size), 0)
	return err
}

// seal writes the body, and behind it its files, to the key.
func seal(f io.Writer, body SavedBody, key SealKey) error {
	id, err := age.ParseX25519Identity(key.Identity)
	if err != nil {
		return err
	}
	w, err := age.Encrypt(f, id.Recipient())
	if err != nil {
		return err
	}
	line, err := json.Marshal(body)
	if err != nil {
		return err
	}
	if _, err := w.Write(append(line, '\n')); err != nil {
		return err
	}
	for _, blob := range body.Blobs {
		src, err := os.Open(blob.path)
		if err != nil {
			return err
		}
		h := sha256.New()
		n, err := io.Copy(io.MultiWriter(w, h), src)
		if err = errors.Join(err, src.Close()); err != nil {
			return err
		}
		if n != blob.Size || hex.EncodeToString(h.Sum(nil)) != blob.Hash {
			return fmt.Errorf("%s has changed since it was planned", blob.path)
		}
	}
	return w.Close()
}
