package apply

import (
	"fmt"
	"os"

	"golem/state"
)

// A store gives the reconcilers the journal's blobs.
type store struct{ *state.Journal }

// Put implements reconcilers.Store.
func (s *store) Put(data []byte) (string, error) { return s.PutBytes(data) }

// PutFile implements reconcilers.Store.
func (s *store) PutFile(f *os.File, want string) (string, error) {
	hash, _, err := s.Journal.PutFile(f, want)
	return hash, err
}

// Keep implements reconcilers.Store: when it returns, what was displaced is durable.
func (s *store) Keep(k state.Kept, open func() (*os.File, error)) error {
	if open != nil {
		f, err := open()
		if err != nil {
			return fmt.Errorf("keep %s: %w", k.Path, err)
		}
		defer f.Close()
		if k.Blob, k.Size, err = s.Journal.PutFile(f, k.Blob); err != nil {
			return fmt.Errorf("keep %s: %w", k.Path, err)
		}
	}
	return s.Do(func(tx *state.Tx) error { return tx.Keep(&k) })
}
