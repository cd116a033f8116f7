package state

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// A store is what a Journal and a Reader share: everything that only reads.
type store struct {
	path string
	o    Options
	// with runs fn on the database; a nil conn means that there is none.
	with func(fn func(*conn) error) error
	// blob gives back bytes that no row names yet; nil: there are none.
	blob func(hash string) (io.ReadCloser, int64, bool, error)
}

// Meta returns a named value about the journal itself, "" if it is not there.
func (s *store) Meta(name string) (value string, err error) {
	err = s.with(func(c *conn) error {
		if c == nil {
			return nil
		}
		value, err = c.meta(name)
		return err
	})
	return value, err
}

// OpenBlob opens the bytes of that hash and says how many there are. Small ones were
// checked against the hash, large ones only for their size; missing or short bytes
// are a *BlobError.
func (s *store) OpenBlob(hash string) (io.ReadCloser, int64, error) {
	if !validHash(hash) {
		return nil, 0, &BlobError{hash, "it is not a hash"}
	}
	if s.blob != nil {
		if r, size, ok, err := s.blob(hash); ok {
			return r, size, err
		}
	}
	var size int64
	var body []byte
	var inline bool
	err := s.with(func(c *conn) error {
		ok := false
		if c != nil {
			var err error
			ok, err = c.one([]any{&size, &inline, &body}, "SELECT size, body IS NOT NULL, body FROM blobs WHERE hash = ?", hash)
			if err != nil {
				return err
			}
		}
		if !ok {
			return &BlobError{hash, "it is not in the journal"}
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, 0, err
	case !inline:
		f, err := openBeside(s.path+".blobs", hash, size)
		if err != nil {
			return nil, 0, explain(s.path, err)
		}
		return f, size, nil
	}
	if err := checkBlob(hash, size, body); err != nil {
		return nil, 0, err
	}
	return io.NopCloser(bytes.NewReader(body)), size, nil
}

func checkBlob(hash string, size int64, body []byte) error {
	if sum := sha256.Sum256(body); int64(len(body)) != size || hex.EncodeToString(sum[:]) != hash {
		return &BlobError{hash, "its bytes are not those that were put"}
	}
	return nil
}

func openBeside(dir, hash string, size int64) (*os.File, error) {
	f, err := os.OpenFile(blobFile(dir, hash), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ELOOP) {
		return nil, &BlobError{hash, fmt.Sprintf("its file in %s is missing", dir)}
	}
	if err != nil {
		return nil, fmt.Errorf("read blob: %w", err)
	}
	st, err := f.Stat()
	if err == nil && (!st.Mode().IsRegular() || st.Size() != size) {
		err = &BlobError{hash, fmt.Sprintf("its file in %s has %d bytes, not %d", dir, st.Size(), size)}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// ReadBlob returns the bytes of that hash, checked against it.
func (s *store) ReadBlob(hash string) ([]byte, error) {
	r, size, err := s.OpenBlob(hash)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, explain(s.path, fmt.Errorf("read blob: %w", err))
	}
	return data, checkBlob(hash, size, data)
}
