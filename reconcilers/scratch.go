package reconcilers

import (
	"errors"
	"fmt"
	"os"
)

// scratchDir makes a directory for files that other programs are to read or write, which
// only golem's user may enter.
func (h *Host) scratchDir(what string) (string, error) {
	if h.Scratch != "" {
		if err := os.Mkdir(h.Scratch, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
			return "", fmt.Errorf("make room for %s: %w", what, err)
		}
	}
	dir, err := os.MkdirTemp(h.Scratch, "golem-"+what+"-")
	if err != nil {
		return "", fmt.Errorf("make room for %s: %w", what, err)
	}
	return dir, nil
}

// ClearScratch removes what a run that was killed left.
func (h *Host) ClearScratch() error {
	if h.Scratch == "" {
		return nil
	}
	if err := os.RemoveAll(h.Scratch); err != nil {
		return fmt.Errorf("clear what a killed run left: %w", err)
	}
	return nil
}
