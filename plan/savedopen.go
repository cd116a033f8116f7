package plan

import (
	"bufio"
	"bytes"
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
)

// A Saved is a plan file that was opened.
type Saved struct {
	Head SavedHead
	Body *SavedBody // nil until it is unsealed

	file   string
	head   []byte // the line of JSON
	sealed int64  // where in the file the sealed part begins
}

// maxSavedHead is the longest line of JSON that a plan file is looked through for.
const maxSavedHead = 256 << 20

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

// savedChanged is why a plan file is refused that is not as golem wrote it.
const savedChanged = "it was changed since golem wrote it"

// OpenSaved reads what anybody may read of a plan file.
func OpenSaved(file string) (*Saved, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("read the plan file: %w", err)
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("read the plan file: %w", err)
	}
	r := bufio.NewReader(io.LimitReader(f, maxSavedHead))
	first, err := r.ReadSlice('\n')
	if why := wrongFirst(string(first), err == nil, st.Size()); why != "" {
		return nil, &FileError{file, why}
	}
	s := &Saved{file: file, sealed: int64(len(first))}
	line, err := r.ReadBytes('\n')
	s.sealed += int64(len(line))
	s.head = bytes.TrimSuffix(line, []byte("\n"))
	if err != nil || json.Unmarshal(s.head, &s.Head) != nil || s.Head.View == nil {
		return nil, &FileError{file, savedChanged}
	}
	return s, nil
}

// wrongFirst says what is wrong with a plan file of a length by its first line; "" for
// nothing.
func wrongFirst(line string, whole bool, length int64) string {
	words := strings.Fields(line)
	if len(words) == 0 || words[0] != savedMagic && !(strings.HasPrefix(savedMagic, words[0]) && !whole) {
		return "it is none of golem's"
	}
	if len(words) > 1 && whole {
		if version, err := strconv.Atoi(words[1]); err != nil || version != savedVersion {
			return fmt.Sprintf("it has format version %s, and this golem reads %d", words[1], savedVersion)
		}
	}
	if !whole || len(words) != 3 {
		return "it is cut short"
	}
	size, err := strconv.ParseInt(words[2], 10, 64)
	switch {
	case err != nil:
		return savedChanged
	case length < size:
		return fmt.Sprintf("it is cut short: it has %d of %d bytes", length, size)
	case length > size:
		return fmt.Sprintf("%s: it has %d bytes, not %d", savedChanged, length, size)
	}
	return ""
}

// Unseal opens what applying takes, and sees that nothing of the file was changed.
func (s *Saved) Unseal(key SealKey) error {
	r, err := s.open(key)
	if err != nil {
		return err
	}
	defer r.file.Close()
	changed := &FileError{s.file, savedChanged}
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

// A sealedReader reads what is sealed in a plan file, piece by piece: there may be large
// files in it.
type sealedReader struct {
	*bufio.Reader
	file *os.File
}

func (s *Saved) open(key SealKey) (*sealedReader, error) {
	id, err := age.ParseX25519Identity(key.Identity)
	if err != nil {
		return nil, fmt.Errorf("read the journal's key for plan files: %w", err)
	}
	f, err := os.Open(s.file)
	if err == nil {
		_, err = f.Seek(s.sealed, io.SeekStart)
	}
	if err != nil {
		return nil, fmt.Errorf("read the plan file: %w", err)
	}
	r, err := age.Decrypt(bufio.NewReader(f), id)
	if err == nil {
		return &sealedReader{bufio.NewReader(r), f}, nil
	}
	f.Close()
	if noMatch := new(age.NoIdentityMatchError); errors.As(err, &noMatch) {
		return nil, &FileError{s.file, "it is sealed to another journal"}
	}
	return nil, &FileError{s.file, savedChanged}
}

// Unpack writes the plan's local files into a directory, and lets its glyphs have their
// bytes from there.
func (s *Saved) Unpack(dir string, key SealKey) error {
	r, err := s.open(key)
	if err != nil {
		return err
	}
	defer r.file.Close()
	if _, err = r.ReadBytes('\n'); err != nil {
		return &FileError{s.file, savedChanged}
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
