package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/urfave/cli/v3"

	"golem/plan"
	"golem/reconcilers"
	"golem/scrolls"
	"golem/state"
)

// A session is what the common flags name: the host and the journal's place.
type session struct {
	host    *reconcilers.Host
	journal string // path
	c       *cli.Command
}

// open opens the host that --root names.
func open(c *cli.Command) (*session, error) {
	s, err := openAt(c.String("root"), c.String("state"))
	if err == nil {
		s.c = c
	}
	return s, err
}

// openAt is open without a command.
func openAt(root, journal string) (*session, error) {
	if root != "" {
		var err error
		if root, err = filepath.Abs(root); err != nil {
			return nil, fmt.Errorf("find root: %w", err)
		}
	}
	host, err := reconcilers.OpenHost(root)
	if err != nil {
		return nil, err
	}
	s := &session{host: host, c: &cli.Command{}}
	if s.journal, err = journalPath(journal, root); err != nil {
		return nil, err
	}
	host.Running = s.journal + ".running"
	s.protectJournal()
	return s, nil
}

// protectJournal keeps glyphs off the journal, where it lies inside the root.
func (s *session) protectJournal() {
	rel, err := filepath.Rel(s.host.Root, s.journal)
	if err != nil || rel == ".." || len(rel) > 2 && rel[:3] == "../" {
		return
	}
	at := "/" + filepath.ToSlash(rel)
	for _, suffix := range []string{"", "-wal", "-shm", ".lock", ".new", ".golem", ".golem.new", ".blobs", ".running", ".scratch"} {
		s.host.Own = append(s.host.Own, at+suffix)
	}
}

// journalPath is where the journal lies (design: "Common").
func journalPath(given, root string) (string, error) {
	const name = "golem/planroom.db"
	switch {
	case given != "":
		return filepath.Abs(given)
	case root != "":
		return filepath.Join(root, "var/lib", name), nil
	case os.Geteuid() == 0:
		return filepath.Join("/var/lib", name), nil
	}
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, name), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("find the journal: %w", err)
	}
	return filepath.Join(home, ".local/state", name), nil
}

// options are the journal's.
func (s *session) options() state.Options {
	root := "/"
	if !s.host.Live() {
		root = s.host.Root
	}
	return state.Options{
		Machine: s.host.MachineID(), Root: root, LockTimeout: s.c.Duration("lock-timeout"), KnownKinds: kindNames(),
	}
}

// kindNames are the names of all kinds.
func kindNames() []string {
	names := make([]string, 0, len(reconcilers.All))
	for _, k := range reconcilers.All {
		names = append(names, k.Name)
	}
	return names
}

func (s *session) read() (*state.Reader, error) { return state.Read(s.journal, s.options()) }

// snapshot is what the journal holds now; empty where there is none.
func (s *session) snapshot() (*state.Snapshot, error) {
	r, err := s.read()
	if err != nil {
		return nil, err
	}
	snap, err := r.Snapshot()
	return snap, errors.Join(err, r.Close())
}

// readAnybodys is read, of a journal that may belong to another host or root.
func (s *session) readAnybodys() (*state.Reader, error) {
	return state.Read(s.journal, state.Options{KnownKinds: kindNames()})
}

// write opens the journal for a run, which alone may leave files beside it.
func (s *session) write(ctx context.Context) (*state.Journal, error) {
	return s.writeAfter(ctx, s.c.Duration("lock-timeout"))
}

// writeAfter is write with a time of its own to wait for the lock.
func (s *session) writeAfter(ctx context.Context, wait time.Duration) (*state.Journal, error) {
	s.host.Scratch = s.journal + ".scratch"
	o := s.options()
	o.LockTimeout = wait
	o.Interrupt = ctx.Done()
	return state.Open(s.journal, o)
}

// load reads the scroll that the command names, or the one in the current directory.
func (s *session) load(ctx context.Context) (*scrolls.Scroll, error) {
	path, o, err := s.source(ctx)
	if err != nil {
		return nil, err
	}
	return scrolls.Load(path, o)
}

// source is the scroll that the command names, and what it is loaded with.
func (s *session) source(ctx context.Context) (string, scrolls.Options, error) {
	path := s.c.Args().First()
	if path == "" {
		path = "."
	}
	if s.c.Args().Len() > 1 {
		return "", scrolls.Options{}, &usageError{command: s.c.FullName(), err: fmt.Errorf("one scroll, not %d", s.c.Args().Len())}
	}
	if plan.IsSaved(path) {
		shown := plan.Printable(path)
		return "", scrolls.Options{}, &hintedError{
			fmt.Sprintf("read scroll %s: it is a saved plan", shown), fmt.Sprintf("golem show %s shows it, golem apply %s does it", shown, shown),
		}
	}
	return path, s.loading(ctx), nil
}

// loading is what a scroll is loaded with.
func (s *session) loading(ctx context.Context) scrolls.Options {
	return scrolls.Options{
		Kinds: reconcilers.Kinds(), Checks: reconcilers.Checks, Facts: s.host.Facts(), Environ: os.Environ(),
		VarFiles: s.c.StringSlice("var-file"), Vars: s.c.StringSlice("var"), Name: s.c.String("name"),
		HostPolicy: s.hostPolicy(), Interrupt: ctx.Done(),
	}
}

// hostPolicy is the file of the host's own policy.
func (s *session) hostPolicy() string { return filepath.Join(s.host.Root, "etc/golem/golem.hcl") }

// checkName refuses a defaulted name that is bound to another directory.
func checkName(scroll *scrolls.Scroll, snap *state.Snapshot) error {
	if scroll == nil || !scroll.Defaulted {
		return nil
	}
	if l := snap.Lineages[scroll.Name]; l != nil && l.Dir != "" && l.Dir != scroll.Dir {
		return &hintedError{
			fmt.Sprintf("the name %q was defaulted when it was first applied from %s, and this scroll lies in %s", scroll.Name, l.Dir, scroll.Dir),
			fmt.Sprintf("write name = %q in the scroll if it is the same one, or another name if it is not", scroll.Name),
		}
	}
	return nil
}

// whoRuns says who runs golem, and what for.
func (s *session) whoRuns(command string, scroll *scrolls.Scroll) state.Run {
	r := state.Run{
		Command: command, UID: os.Getuid(), SudoUser: reconcilers.LoginUser(), Version: version,
		BootID: reconcilers.BootID(), Machine: s.host.MachineID(), PID: os.Getpid(), Started: time.Now(),
	}
	if scroll != nil {
		r.Source, r.Digest = scroll.Source, scroll.Digest
	}
	return r
}

// reading opens the journal for reading and gives it to fn.
func reading(c *cli.Command, fn func(*session, *state.Reader) error) error {
	s, err := open(c)
	if err != nil {
		return err
	}
	r, err := s.read()
	if err != nil {
		return err
	}
	return errors.Join(fn(s, r), r.Close())
}

// checked opens the journal for writing once check has nothing against it: a mistake must
// neither make a journal nor take its lock.
func checked(ctx context.Context, c *cli.Command, check func(*session, *state.Snapshot) error) (*session, *state.Journal, error) {
	var s *session
	err := reading(c, func(opened *session, r *state.Reader) error {
		s = opened
		snap, err := r.Snapshot()
		if err != nil {
			return err
		}
		return check(s, snap)
	})
	if err != nil {
		return nil, nil, err
	}
	journal, err := s.write(ctx)
	return s, journal, err
}
