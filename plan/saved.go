package plan

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

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

// A Saved is a plan file that was opened.
type Saved struct {
	Head SavedHead
	Body *SavedBody // nil until it is unsealed

	head, sealed []byte
	file         string
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

// A FileError says what is wrong with a plan file.
type FileError struct{ File, Why string }

func (e *FileError) Error() string { return fmt.Sprintf("read the plan file %s: %s", e.File, e.Why) }

// Hint says what to do.
func (*FileError) Hint() string { return "golem plan --out makes a new one" }

// IsSaved says whether a file is a plan file, be it cut short or of another version.
func IsSaved(path string) bool {
	st, err := os.Stat(path)
	if err != nil || !st.Mode().IsRegular() {
		return false
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, len(savedMagic)+1)
	n, err := io.ReadFull(f, head)
	return err == nil && string(head) == savedMagic+" " || n > 4 && strings.HasPrefix(savedMagic, string(head[:n]))
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

// OpenSaved reads what anybody may read of a plan file.
func OpenSaved(file string) (*Saved, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the plan file: %w", err)
	}
	bad := func(format string, args ...any) (*Saved, error) {
		return nil, &FileError{file, fmt.Sprintf(format, args...)}
	}
	first, rest, whole := bytes.Cut(data, []byte("\n"))
	words := strings.Fields(string(first))
	if len(words) == 0 || words[0] != savedMagic && !(strings.HasPrefix(savedMagic, words[0]) && !whole) {
		return bad("it is none of golem's")
	}
	if len(words) > 1 && whole {
		if version, err := strconv.Atoi(words[1]); err != nil || version != savedVersion {
			return bad("it has format version %s, and this golem reads %d", words[1], savedVersion)
		}
	}
	if !whole || len(words) != 3 {
		return bad("it is cut short")
	}
	size, err := strconv.ParseInt(words[2], 10, 64)
	if err != nil {
		return bad("it was changed since golem wrote it")
	}
	if int64(len(data)) < size {
		return bad("it is cut short: it has %d of %d bytes", len(data), size)
	}
	if int64(len(data)) > size {
		return bad("it was changed since golem wrote it: it has %d bytes, not %d", len(data), size)
	}
	s := &Saved{file: file}
	s.head, s.sealed, _ = bytes.Cut(rest, []byte("\n"))
	if err := json.Unmarshal(s.head, &s.Head); err != nil || s.Head.View == nil {
		return bad("it was changed since golem wrote it")
	}
	return s, nil
}

// Unseal opens what applying takes, and sees that nothing of the file was changed.
func (s *Saved) Unseal(key SealKey) error {
	r, err := s.open(key)
	if err != nil {
		return err
	}
	changed := &FileError{s.file, "it was changed since golem wrote it"}
	line, err := r.ReadBytes('\n')
	if err != nil {
		return changed
	}
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.UseNumber()
	body := &SavedBody{}
	if err := dec.Decode(body); err != nil {
		return changed
	}
	sum := sha256.Sum256(s.head)
	if hex.EncodeToString(sum[:]) != body.HeadHash || subtle.ConstantTimeCompare([]byte(body.Token), []byte(key.Token)) != 1 {
		return changed
	}
	if _, err := io.Copy(io.Discard, r); err != nil {
		return changed
	}
	s.Body = body
	return nil
}

func (s *Saved) open(key SealKey) (*bufio.Reader, error) {
	id, err := age.ParseX25519Identity(key.Identity)
	if err != nil {
		return nil, fmt.Errorf("read the journal's key for plan files: %w", err)
	}
	r, err := age.Decrypt(bytes.NewReader(s.sealed), id)
	if noMatch := new(age.NoIdentityMatchError); errors.As(err, &noMatch) {
		return nil, &FileError{s.file, "it is sealed to another journal"}
	}
	if err != nil {
		return nil, &FileError{s.file, "it was changed since golem wrote it"}
	}
	return bufio.NewReader(r), nil
}

// Unpack writes the plan's local files into a directory, and lets its glyphs have their
// bytes from there.
func (s *Saved) Unpack(dir string, key SealKey) error {
	r, err := s.open(key)
	if err == nil {
		_, err = r.ReadBytes('\n')
	}
	if err != nil {
		return err
	}
	for _, blob := range s.Body.Blobs {
		if err := unpackBlob(r, filepath.Join(dir, filepath.Base(blob.Hash)), blob); err != nil {
			return fmt.Errorf("unpack the plan file %s: %w", s.file, err)
		}
	}
	if s.Body.Scroll != nil {
		for _, g := range s.Body.Scroll.Glyphs() {
			for name, hash := range g.Files {
				g.Files[name] = filepath.Join(dir, filepath.Base(hash))
			}
		}
	}
	return nil
}

func unpackBlob(r io.Reader, file string, blob SavedBlob) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	h := sha256.New()
	_, err = io.CopyN(io.MultiWriter(f, h), r, blob.Size)
	if err == nil && hex.EncodeToString(h.Sum(nil)) != blob.Hash {
		err = errors.New("its bytes are not those that were saved")
	}
	return errors.Join(err, f.Close())
}

// Elsewhere tells how the host and the journal are not those that the plan was made for;
// none for not at all.
func (s *Saved) Elsewhere(journal, machine, root string) []string {
	var why []string
	if s.Head.Machine != machine {
		why = append(why, fmt.Sprintf("it was made on another host: %s, with machine id %q, not %q", Printable(s.Head.Host), Printable(s.Head.Machine), machine))
	}
	if s.Head.Root != root {
		why = append(why, fmt.Sprintf("it was made for the root %s, not %s", Printable(s.Head.Root), root))
	}
	if s.Head.Journal != journal {
		why = append(why, "it was made with another journal")
		if journal == "" {
			why[len(why)-1] = "it was made with a journal, and there is none here"
		}
	}
	return why
}
