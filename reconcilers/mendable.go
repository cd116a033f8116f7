package reconcilers

import (
	"context"
	"errors"
	"os/exec"

	"golang.org/x/sys/unix"
)

// passing are the system's errors that go away by themselves. Whatever else the system
// says of a file (no room, no permission, read-only), it will say again.
var passing = []error{unix.EAGAIN, unix.EBUSY, unix.EINTR, unix.ETXTBSY, unix.ETIMEDOUT, unix.ESTALE}

// Mendable says whether trying again may help: the errors of programs, unless they are
// marked, and those of the system that pass.
func Mendable(err error) bool {
	var command *CommandError
	var check *CheckError
	var unit *BrokenUnitError
	var refused *RefusedError
	var pod *ContainerError
	var taken *PortError
	var download *DownloadError
	switch {
	case err == nil, errors.Is(err, ErrMoved), errors.Is(err, context.Canceled):
		return false
	case errors.As(err, &refused): // the same file would be refused again
		return false
	case errors.As(err, &download):
		return !download.Final
	case errors.As(err, &check):
		return true
	case errors.As(err, &command):
		return !errors.Is(err, unix.ENOENT) && !errors.Is(err, exec.ErrNotFound) // a program that is not there
	case errors.As(err, &pod), errors.As(err, &taken):
		return true // it did what containers do; whoever has the port may let go of it
	case errors.As(err, &unit) && !errors.As(err, new(unix.Errno)):
		return true // it did what units do
	}
	for _, one := range passing {
		if errors.Is(err, one) {
			return true
		}
	}
	return false
}
