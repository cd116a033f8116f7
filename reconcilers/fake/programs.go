package fake

import (
	"errors"
	"os"
	"path/filepath"
)

// Programs plays a few small programs on a file tree, for what runs commands:
//
//	put PATH TEXT    makes a file
//	take PATH        removes it, if it is there
//	has PATH TEXT    status 0 if it is there and holds that
//	fail TEXT        prints it and ends with status 3
//	half PATH TEXT   does as put does, and then as fail does
type Programs struct{ Root string }

// Run answers a command; ok is false for one that is none of them.
func (p Programs) Run(argv ...string) (a Answer, ok bool) {
	text := argv[len(argv)-1]
	at := filepath.Join(p.Root, argv[min(1, len(argv)-1)])
	switch argv[0] {
	case "put":
		return answerOf(os.WriteFile(at, []byte(text), 0o644)), true
	case "take":
		err := os.Remove(at)
		if errors.Is(err, os.ErrNotExist) {
			err = nil
		}
		return answerOf(err), true
	case "has":
		if is, err := os.ReadFile(at); err != nil || string(is) != text {
			return Answer{Code: 1}, true
		}
		return Answer{}, true
	case "fail":
		return Answer{Err: text, Code: 3}, true
	case "half":
		if a := answerOf(os.WriteFile(at, []byte(text), 0o644)); a.Code != 0 {
			return a, true
		}
		return Answer{Err: text, Code: 3}, true
	}
	return Answer{}, false
}

func answerOf(err error) Answer {
	if err != nil {
		return Answer{Err: err.Error(), Code: 1}
	}
	return Answer{}
}
