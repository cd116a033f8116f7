package reconcilers

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"golem/scrolls"
)

// guardTime is how long a guard may take where nothing else is written: it only looks.
const guardTime = time.Minute

// A guardsSaid is what a command's guards say together.
type guardsSaid struct {
	runs   bool   // all of them ask for it
	why    string // what the first said that does not, or else the first
	unsure string // the guard that cannot be asked, since what it runs is not there
}

// askGuards asks a command's guards, the cheapest first, until one says that there is
// nothing to do.
func askGuards(ctx context.Context, w *World, g *scrolls.Glyph) (guardsSaid, error) {
	var asks string
	no := func(format string, args ...any) (guardsSaid, error) {
		return guardsSaid{why: fmt.Sprintf(format, args...)}, nil
	}
	yes := func(text string) {
		if asks == "" {
			asks = text
		}
	}
	if made := str(g.Attrs, "creates"); made != "" {
		there, err := w.Host.stands(made)
		shown := quote(made)
		if slices.Contains(g.Secret, "creates") {
			shown = "what it creates"
		}
		switch {
		case err != nil:
			return guardsSaid{}, &AttrError{Attr: "creates", Summary: "Guard cannot be asked", Err: fmt.Errorf("look for what it creates: %w", err)}
		case there:
			return no("%s is there", shown)
		}
		yes(shown + " is not there")
	}
	for _, guard := range []struct {
		attr     string
		runs     bool
		yes, not string
	}{
		{"unless", false, "its `unless` does not hold", "its `unless` holds"},
		{"onlyif", true, "its `onlyif` holds", "its `onlyif` does not hold"},
	} {
		if len(words(g.Attrs, guard.attr)) == 0 {
			continue
		}
		if missing(ctx, w, g, guard.attr) != nil {
			return guardsSaid{unsure: guard.attr}, nil
		}
		holds, err := askCommand(ctx, w, g, guard.attr)
		if err != nil {
			return guardsSaid{}, err
		}
		if holds != guard.runs {
			return no("%s", guard.not)
		}
		yes(guard.yes)
	}
	return guardsSaid{runs: true, why: asks}, nil
}

// stands says whether there is something at a path, where links lead included.
func (h *Host) stands(p string) (bool, error) {
	_, err := os.Stat(filepath.Join(h.Root, p))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		return false, nil
	}
	return err == nil, err
}

// askCommand runs a guard: status 0 is that it holds, any other that it does not. One that
// does not come to an end of its own says nothing.
func askCommand(ctx context.Context, w *World, g *scrolls.Glyph, attr string) (bool, error) {
	c, err := commandFor(ctx, w, g, attr)
	if err == nil {
		_, err = w.Host.Do(ctx, c)
	}
	var failed *CommandError
	switch {
	case err == nil:
		return true, nil
	case ctx.Err() != nil:
		return false, err
	case errors.As(err, &failed) && failed.Code > 0:
		return false, nil
	}
	return false, &AttrError{Attr: attr, Summary: "Guard cannot be asked", Err: fmt.Errorf("ask `%s`: %w", attr, silent(g, err))}
}

// missing says what an attribute's command needs and is not there; nil for nothing.
func missing(ctx context.Context, w *World, g *scrolls.Glyph, attr string) error {
	if w.Host.Exec != nil {
		return nil // a test's fake has no programs
	}
	argv := words(g.Attrs, attr)
	if _, err := program(argv[0]); err != nil {
		return &AttrError{Attr: attr, Summary: "Program is not there", Err: fmt.Errorf("nothing on this host is the program %s, and no earlier glyph of this run can bring it", shownWords(argv[:1]))}
	}
	if dir := str(g.Attrs, "dir"); dir != "" {
		if st, err := os.Stat(filepath.Join(w.Host.Root, dir)); err != nil || !st.IsDir() {
			return &AttrError{Attr: "dir", Summary: "Directory is not there", Err: fmt.Errorf("there is no directory %s, and no earlier glyph of this run can make it", quote(dir))}
		}
	}
	_, _, err := userOf(ctx, w, g)
	return err
}

// commandFor is what an attribute of a glyph runs.
func commandFor(ctx context.Context, w *World, g *scrolls.Glyph, attr string) (Command, error) {
	least := w.Timeout
	if attr == "unless" || attr == "onlyif" {
		least = min(least, guardTime)
	}
	c := Command{
		Argv: words(g.Attrs, attr), Dir: "/", Talk: true, Timeout: duration(g.Attrs, "timeout", least),
		Secret: slices.Contains(g.Secret, attr), Changes: attr == "run" || attr == "undo",
	}
	if dir := str(g.Attrs, "dir"); dir != "" {
		c.Dir = dir
	}
	if w.Host.Exec == nil {
		found, err := program(c.Argv[0])
		if err != nil {
			return c, fmt.Errorf("run %s: there is no such program: %w", shownWords(c.Argv[:1]), unix.ENOENT)
		}
		c.Argv[0] = found
	}
	as, env, err := userOf(ctx, w, g)
	if err != nil {
		return c, err
	}
	c.As, c.Env = as, env
	vars := object(g.Attrs, "env")
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		c.Env = append(c.Env, name+"="+str(vars, name))
	}
	return c, nil
}

// userOf is who runs a glyph's commands, and what of the environment tells of that; nil for
// who runs golem.
func userOf(ctx context.Context, w *World, g *scrolls.Glyph) (*Credentials, []string, error) {
	name := str(g.Attrs, "user")
	if name == "" {
		return nil, nil, nil
	}
	wrong := func(format string, args ...any) (*Credentials, []string, error) {
		return nil, nil, &AttrError{Attr: "user", Summary: "Cannot be run by this user", Err: fmt.Errorf(format, args...)}
	}
	out, err := w.Host.Run(ctx, 10*time.Second, "getent", "--", "passwd", name)
	part := strings.Split(strings.TrimSpace(string(out.Stdout)), ":")
	if ctx.Err() != nil {
		return nil, nil, ctx.Err()
	}
	if err != nil || len(part) < 7 {
		return wrong("no user is called %q here", name)
	}
	uid, err1 := strconv.Atoi(part[2])
	gid, err2 := strconv.Atoi(part[3])
	if err := errors.Join(err1, err2); err != nil {
		return wrong("read what getent says of %q: %w", name, err)
	}
	env := []string{"HOME=" + part[5], "USER=" + part[0], "LOGNAME=" + part[0], "SHELL=" + part[6]}
	if uid == w.Host.UID {
		return nil, env, nil
	}
	if w.Host.UID != 0 {
		return wrong("only root runs commands as another user, and golem is not run by root")
	}
	as := &Credentials{UID: uid, GID: gid}
	out, err = w.Host.Run(ctx, 10*time.Second, "id", "-G", "--", part[0])
	if err != nil {
		return wrong("ask for the groups of %q: %w", name, err)
	}
	for _, word := range strings.Fields(string(out.Stdout)) {
		group, err := strconv.Atoi(word)
		if err != nil {
			return wrong("read the groups of %q: %w", name, err)
		}
		as.Groups = append(as.Groups, group)
	}
	return as, env, nil
}

// runOf runs a command that changes the host.
func runOf(ctx context.Context, w *World, g *scrolls.Glyph, attr string) error {
	c, err := commandFor(ctx, w, g, attr)
	if err != nil {
		return err
	}
	defer w.Host.forgetNames()
	out, err := w.Host.Do(ctx, c)
	var failed *CommandError
	if !errors.As(err, &failed) {
		return err
	}
	told := *failed
	told.Argv, told.Secret = words(g.Attrs, attr), c.Secret
	if told.Said == "" && told.Code > 0 {
		told.Said = strings.TrimSpace(string(out.Stdout)) // some have their say there
	}
	if attr == "undo" {
		return fmt.Errorf("undo: %w", silent(g, &told))
	}
	return silent(g, &told)
}

// silent takes from a command's error what must not be shown.
func silent(g *scrolls.Glyph, err error) error {
	var failed *CommandError
	if !secret(g) || !errors.As(err, &failed) {
		return err
	}
	told := *failed
	told.Said = ""
	return &told
}

// runAndAsk runs a command. Its guards must find nothing to do then.
func runAndAsk(ctx context.Context, w *World, g *scrolls.Glyph) error {
	if err := runOf(ctx, w, g, "run"); err != nil || !guarded(g) {
		return err
	}
	said, err := askGuards(ctx, w, g)
	switch {
	case err != nil:
		return err
	case said.unsure != "":
		return missing(ctx, w, g, said.unsure)
	case said.runs:
		return &StillAsksError{Why: said.why}
	}
	return nil
}

// A StillAsksError is a command that ran well, and whose guards ask for it all the same.
type StillAsksError struct{ Why string }

func (e *StillAsksError) Error() string {
	return fmt.Sprintf("it ran, and has still to be run: %s", e.Why)
}

// Hint says what can be done.
func (e *StillAsksError) Hint() string {
	return "let the guard say whether there is something left to do; as it is, the command would run at every apply"
}
