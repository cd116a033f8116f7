package reconcilers

import (
	"context"
	"errors"

	"golang.org/x/sys/unix"
)

// A FatalError is an error that trying again cannot mend, though it came from a
// command.
type FatalError struct{ Err error }

func (e *FatalError) Error() string { return e.Err.Error() }
func (e *FatalError) Unwrap() error { return e.Err }

// fatal marks an error that trying again cannot mend.
func fatal(err error) error {
	if err == nil {
		return nil
	}
	return &FatalError{err}
}

// A Resumer is a reconciler whose Enact, called again after it failed, goes on from
// there: nothing has to be taken back first.
type Resumer interface{ Resumes() bool }

// passing are the system's errors that go away by themselves. Whatever else the system
// says of a file (no room, no permission, read-only), it will say again.
var passing = []error{unix.EAGAIN, unix.EBUSY, unix.EINTR, unix.ETXTBSY, unix.ETIMEDOUT, unix.ESTALE}

// Mendable says whether trying again may help: the errors of programs, unless they are
// marked, and those of the system that pass.
func Mendable(err error) bool {
	var fatal *FatalError
	var command *CommandError
	var check *CheckError
	var unit *BrokenUnitError
	switch {
	case err == nil, errors.As(err, &fatal), errors.Is(err, ErrMoved), errors.Is(err, context.Canceled):
		return false
	case errors.As(err, &check), errors.As(err, &unit):
		return true
	case errors.As(err, &command):
		return !errors.Is(err, unix.ENOENT) // a program that is not there
	}
	for _, one := range passing {
		if errors.Is(err, one) {
			return true
		}
	}
	return false
}
