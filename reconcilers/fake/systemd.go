// Package fake holds stand-ins for the programs of a host, with a memory of their own:
// they answer the commands that golem runs as the real ones do, and can be told to
// fail, to lie and to die. It knows nothing of golem.
package fake

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"time"
)

// An Answer is what a program printed and how it ended.
type Answer struct {
	Out, Err string
	Code     int
}

// A Systemd plays systemctl and journalctl on a file tree. Unit files are real files
// there, and enabling makes real links. What runs is kept in a file beside the tree, so
// that a process that is killed finds it again.
//
// A unit's ExecStart says how its program behaves:
//
//	/fake/run    runs until it is stopped; so does everything not named here
//	/fake/fail   fails at once
//	/fake/dies   runs for a second, then fails
//	/fake/ends   runs for half a second, then ends well
//	/fake/hangs  never says that it is ready
//	/fake/slow   says so after three seconds
//	/fake/stuck  runs, and fails when it is stopped
type Systemd struct {
	Root  string // the file tree
	State string // the file that holds what runs; "" for none
	// Deaf are the verbs that say "done" and do nothing.
	Deaf []string

	held *memory // where there is no file
}

// A memory is what systemd knows beside its files.
type memory struct {
	Now   int64 // microseconds since boot
	Lives map[string]*life
	// Busy are sockets that clients keep connecting to.
	Busy []string
	Logs map[string][]string
	// Calls counts what each unit was told, as "reload x.service".
	Calls map[string]int
	Pids  int

	dontBlock bool // the command at hand does not wait for what it starts
}

// A life is a unit that is loaded.
type life struct {
	Text                   string // its files as they were read
	Active, Sub, Result    string
	Code, Status, Restarts int
	PID                    int
	Entered                int64
	Ends                   int64 // when its program ends by itself; 0: never
	Limit                  bool  // it failed too often to be started again
	Gone                   bool  // its file was gone when the files were read
}

func (l *life) up() bool { return l != nil && (l.Active == "active" || l.Active == "reloading") }

// Boot makes a file tree one that systemd runs.
func (s *Systemd) Boot() error {
	return os.MkdirAll(s.Root+"/run/systemd/system", 0o755)
}

// Write puts a unit file (or a drop-in) into the tree, as a package does.
func (s *Systemd) Write(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(s.Root+path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(s.Root+path, []byte(text), 0o644)
}

// Run answers a command. It says false for a program that is not systemd's.
func (s *Systemd) Run(argv ...string) (Answer, bool) {
	switch filepath.Base(argv[0]) {
	case "systemctl":
		return s.with(func(m *memory) Answer { return s.systemctl(m, argv[1:]) }), true
	case "journalctl":
		return s.with(func(m *memory) Answer { return m.journal(argv[1:]) }), true
	}
	return Answer{}, false
}

// Sleep lets time pass for what runs.
func (s *Systemd) Sleep(d time.Duration) {
	s.with(func(m *memory) Answer { m.Now += d.Microseconds(); return Answer{} })
}

// Connect lets a client keep connecting to a socket.
func (s *Systemd) Connect(socket string) {
	s.with(func(m *memory) Answer { m.Busy = append(m.Busy, socket); return Answer{} })
}

// Called counts how often a unit was told something: Called("reload", "x.service").
func (s *Systemd) Called(verb, name string) int {
	n := 0
	s.with(func(m *memory) Answer { n = m.Calls[verb+" "+name]; return Answer{} })
	return n
}

// Active is a unit's state: active, inactive, failed, activating.
func (s *Systemd) Active(name string) string {
	state := "inactive"
	s.with(func(m *memory) Answer {
		if l := m.Lives[s.find(name).id]; l != nil {
			state = l.Active
		}
		return Answer{}
	})
	return state
}

// Print is a fingerprint: every unit that is not at rest, and every link and directory
// where units are enabled and masked.
func (s *Systemd) Print() string {
	var lines []string
	s.with(func(m *memory) Answer {
		for name, l := range m.Lives {
			if l.Active != "inactive" {
				lines = append(lines, fmt.Sprintf("unit %s %s %s", name, l.Active, l.Sub))
			}
		}
		return Answer{}
	})
	for _, dir := range []string{"/etc/systemd/system", "/run/systemd/system"} {
		_ = filepath.WalkDir(s.Root+dir, func(p string, e fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			line := fmt.Sprintf("%s %s", e.Type(), strings.TrimPrefix(p, s.Root))
			if target, err := os.Readlink(p); err == nil {
				line += " -> " + target
			}
			lines = append(lines, line)
			return nil
		})
	}
	sort.Strings(lines)
	return strings.Join(lines, "\n")
}

// with lets do work on the memory as it is now, and keeps what it leaves.
func (s *Systemd) with(do func(*memory) Answer) Answer {
	m := &memory{Lives: map[string]*life{}, Logs: map[string][]string{}, Calls: map[string]int{}, Now: 5_000_000, Pids: 100}
	if s.State == "" {
		if s.held == nil {
			s.held = m
		}
		s.tick(s.held)
		defer s.tick(s.held)
		return do(s.held)
	}
	data, err := os.ReadFile(s.State)
	if err == nil {
		err = json.Unmarshal(data, m)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Answer{Err: err.Error(), Code: 1}
	}
	s.tick(m)
	a := do(m)
	s.tick(m)
	data, err = json.Marshal(m)
	if err == nil {
		err = os.WriteFile(s.State+".new", data, 0o600)
	}
	if err == nil {
		err = os.Rename(s.State+".new", s.State)
	}
	if err != nil {
		return Answer{Err: err.Error(), Code: 1}
	}
	return a
}

// tick lets happen what was due by now: programs end, sockets wake services.
func (s *Systemd) tick(m *memory) {
	for again := true; again; {
		again = false
		for name, l := range m.Lives {
			if l.Ends != 0 && l.Ends <= m.Now {
				s.ended(m, name, l)
				again = l.Ends != 0 && l.Ends <= m.Now || again
			}
		}
	}
	for _, socket := range m.Busy {
		if m.Lives[socket].up() {
			s.start(m, s.triggers(socket))
		}
	}
}

// ended is the end of a unit's program by itself.
func (s *Systemd) ended(m *memory, name string, l *life) {
	u := parse(l.Text)
	at := l.Ends
	l.Ends, l.PID = 0, 0
	if l.Sub == "start" {
		l.Active, l.Sub, l.Entered = "active", "running", at
		return
	}
	if l.Sub == "auto-restart" {
		l.Restarts++
		l.Active, l.Sub, l.Entered = "active", "running", at
		l.Ends = at + lifetime(u)
		return
	}
	well := strings.HasPrefix(u.one("Service", "ExecStart"), "/fake/ends")
	l.Code, l.Status, l.Result = 1, 0, "success"
	l.Active, l.Sub = "inactive", "dead"
	if !well {
		m.log(name, "fake: the program broke down")
		l.Status, l.Result = 1, "exit-code"
		l.Active, l.Sub = "failed", "failed"
	}
	restart := u.one("Service", "Restart")
	switch {
	case restart == "always" || restart == "on-failure" && !well:
		l.Active, l.Sub, l.Ends = "activating", "auto-restart", at+100_000
		if l.Restarts >= 5 {
			l.Active, l.Sub, l.Result, l.Ends, l.Limit = "failed", "failed", "start-limit-hit", 0, true
		}
	case u.one("Service", "RemainAfterExit") == "yes" && well:
		l.Active, l.Sub = "active", "exited"
	}
	if !l.up() && l.Active != "activating" {
		s.withdraw(m, name)
	}
}

func (m *memory) log(name, line string) { m.Logs[name] = append(m.Logs[name], line) }

// journal answers journalctl.
func (m *memory) journal(args []string) Answer {
	name, most := "", 10
	for i, arg := range args {
		if arg == "-u" || arg == "--unit" {
			name = args[i+1]
		}
		if n, ok := strings.CutPrefix(arg, "--unit="); ok {
			name = n
		}
		if n, ok := strings.CutPrefix(arg, "--lines="); ok {
			if _, err := fmt.Sscan(n, &most); err != nil {
				return Answer{Err: err.Error(), Code: 1}
			}
		}
	}
	lines := m.Logs[name]
	lines = lines[max(0, len(lines)-most):]
	return Answer{Out: strings.Join(append(slices.Clone(lines), ""), "\n")}
}
