package reconcilers

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// A Return is what takes a run back if nobody confirms it: a service of systemd's that
// runs golem, a timer for it, and a link by which it runs at the next boot (design: "A
// plan is not enough").
type Return struct {
	Name string   // of the units, without their ending
	Argv []string // the pinned golem, and what it is to do
	// About is what would be taken back, for the units' descriptions.
	About string
	Delay time.Duration
}

const (
	unitHome = "/etc/systemd/system"
	// bootWants is where the link for the next boot lies.
	bootWants = unitHome + "/multi-user.target.wants"
	// manageTime bounds one call of systemctl about golem's own units.
	manageTime = time.Minute
)

// A NoSystemdError says that there is nobody who could take a run back.
type NoSystemdError struct{ Why string }

func (e *NoSystemdError) Error() string {
	return "apply --confirm-within: " + e.Why
}

// Hint says what else there is.
func (*NoSystemdError) Hint() string {
	return "without --confirm-within the run stands at once; golem rollback takes it back by hand"
}

// CanReturn says why a run could not be taken back by itself on this host; nil: it can.
func (h *Host) CanReturn() error {
	switch {
	case !h.Live():
		return &NoSystemdError{"this is a file tree, not a running host: no systemd here would take the run back"}
	case !h.systemd():
		return &NoSystemdError{"this host is not run by systemd, which would have to take the run back"}
	case h.UID != 0:
		return &NoSystemdError{"only root can have systemd take the run back"}
	}
	return nil
}

// Arm makes a return stand ready, durably: from here on the run is taken back when the
// delay is over, or at the next boot.
func (h *Host) Arm(ctx context.Context, r Return) error {
	if _, err := h.Run(ctx, manageTime, r.Argv[0], "version"); err != nil {
		return fmt.Errorf("arm the return: the pinned golem does not run: %w", err)
	}
	service, timer := r.Name+".service", r.Name+".timer"
	err := h.writeOwn(unitHome+"/"+service, r.serviceText())
	if err == nil {
		err = h.writeOwn(unitHome+"/"+timer, r.timerText())
	}
	if err == nil {
		err = h.putLink(h.returnLink(r.Name), nil)
	}
	if err == nil {
		err = h.manage(ctx, "daemon-reload")
	}
	if err == nil {
		err = h.manage(ctx, "restart", "--", timer)
	}
	if err == nil {
		err = h.armed(ctx, timer)
	}
	if err != nil {
		return fmt.Errorf("arm the return: %w", err)
	}
	return nil
}

// armed looks whether the timer runs: success is not believed.
func (h *Host) armed(ctx context.Context, timer string) error {
	units, err := h.showUnits(ctx, []string{timer})
	if err != nil {
		return err
	}
	if u := units[0]; !u.running() {
		return fmt.Errorf("%s is %s after it was started", timer, u.Active)
	}
	return nil
}

// Disarm takes a return away. waiting says that its service may be waiting for its time,
// and is to be stopped; the service itself must not say so. It is no error if there is none.
func (h *Host) Disarm(ctx context.Context, name string, waiting bool) error {
	if err := h.disarm(ctx, name, waiting); err != nil {
		return fmt.Errorf("disarm the return: %w", err)
	}
	return nil
}

// disarm stops and removes the units of a return, and with them the link that runs it at the
// next boot.
func (h *Host) disarm(ctx context.Context, name string, waiting bool) error {
	service, timer := name+".service", name+".timer"
	units, err := h.showUnits(ctx, []string{timer, service})
	if err != nil {
		return err
	}
	stop := []string{"stop", "--"}
	if units[0].known() {
		stop = append(stop, timer)
	}
	if waiting && units[1].known() {
		stop = append(stop, service)
	}
	if len(stop) > 2 {
		if err := h.manage(ctx, stop...); err != nil {
			return err
		}
	}
	if _, err := h.takeLink(h.returnLink(name)); err != nil {
		return err
	}
	if err := h.dropDir(bootWants); err != nil {
		return err
	}
	for _, file := range []string{timer, service} {
		if err := h.removeOwn(unitHome + "/" + file); err != nil {
			return err
		}
	}
	if err := h.manage(ctx, "daemon-reload"); err != nil {
		return err
	}
	for i, id := range []string{timer, service} {
		if units[i].Active == "failed" || waiting && units[i].known() {
			// A service that was stopped while it waited counts as failed.
			if err := h.manage(ctx, "reset-failed", "--", id); err != nil && !strings.Contains(err.Error(), "not loaded") {
				return err
			}
		}
	}
	h.unitFiles = false
	return nil
}

// returnLink is what runs the service at the next boot.
func (h *Host) returnLink(name string) unitLink {
	return unitLink{bootWants + "/" + name + ".service", Node{
		Type: Link, Mode: 0o777, UID: h.UID, GID: h.GID, Target: Bytes(unitHome + "/" + name + ".service"),
	}}
}

// manage tells systemd something about golem's own units.
func (h *Host) manage(ctx context.Context, args ...string) error {
	argv := append([]string{"systemctl", "--no-ask-password"}, args...)
	_, err := h.Do(context.WithoutCancel(ctx), Command{Argv: argv, Changes: true, Timeout: manageTime})
	return err
}

// serviceText is the service's file. It is ordered before nothing, so that it can start
// and stop whatever it has to while a boot is going on.
func (r Return) serviceText() string {
	var line []string
	for i, word := range r.Argv {
		word = unitWord(word)
		if i > 0 {
			word = strings.ReplaceAll(word, "$", "$$")
		}
		line = append(line, word)
	}
	return "# Made by golem apply --confirm-within; golem confirm removes it.\n" +
		"[Unit]\nDescription=Take back " + literal(r.About) + ", which nobody confirmed\n" +
		"DefaultDependencies=no\nAfter=sysinit.target local-fs.target basic.target\n" +
		"RequiresMountsFor=" + unitWord(r.Argv[0]) + "\nConditionFileIsExecutable=" + literal(r.Argv[0]) + "\n" +
		"Conflicts=shutdown.target\nBefore=shutdown.target\nStartLimitIntervalSec=0\n\n" +
		"[Service]\nType=oneshot\nExecStart=" + strings.Join(line, " ") + "\n" +
		"TimeoutStartSec=infinity\nRestart=on-failure\nRestartSec=15s\n\n[Install]\nWantedBy=multi-user.target\n"
}

func (r Return) timerText() string {
	return "# Made by golem apply --confirm-within; golem confirm removes it.\n" +
		"[Unit]\nDescription=Take back " + literal(r.About) + " unless somebody confirms it\n\n" +
		fmt.Sprintf("[Timer]\nOnActiveSec=%dms\nAccuracySec=100ms\n", r.Delay.Milliseconds())
}

// writeOwn writes a file of golem's own, durably and whole.
func (h *Host) writeOwn(p, text string) error {
	if err := h.fault("own", p); err != nil {
		return err
	}
	d := h.newDirs()
	defer d.close()
	dir, name := split(p)
	fd, err := d.fd(dir)
	if err != nil {
		return fmt.Errorf("open %s: %w", dir, err)
	}
	fresh := "." + name + ".new"
	if err := unix.Unlinkat(fd, fresh, 0); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("write %s: %w", p, err)
	}
	file, err := unix.Openat(fd, fresh, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return fmt.Errorf("write %s: %w", p, err)
	}
	f := os.NewFile(uintptr(file), p)
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close()); err == nil {
		err = unix.Renameat(fd, fresh, fd, name)
	}
	if err == nil {
		err = unix.Fsync(fd)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", p, err)
	}
	return nil
}

// removeOwn removes a file of golem's own, durably, if it is there.
func (h *Host) removeOwn(p string) error {
	if err := h.fault("own", p); err != nil {
		return err
	}
	d := h.newDirs()
	defer d.close()
	dir, name := split(p)
	fd, err := d.fd(dir)
	if err != nil {
		return fmt.Errorf("open %s: %w", dir, err)
	}
	for _, n := range []string{name, "." + name + ".new"} {
		if err := unix.Unlinkat(fd, n, 0); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove %s: %w", p, err)
		}
	}
	if err := unix.Fsync(fd); err != nil {
		return fmt.Errorf("sync %s: %w", dir, err)
	}
	return nil
}

// Uptime is the time since the machine started, sleep included, which no setting of the
// clock moves.
func (h *Host) Uptime() time.Duration {
	if h.Clock != nil {
		return h.Clock()
	}
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}
