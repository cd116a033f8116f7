package reconcilers

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
)

// answers is a host that gives fixed answers to commands, and counts them.
func answers(t *testing.T, say func(argv []string) (string, error)) (*World, *[]string) {
	t.Helper()
	h, err := OpenHost(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	h.Booted = true
	var asked []string
	h.Exec = func(_ context.Context, c Command) (Output, error) {
		asked = append(asked, strings.Join(c.Argv, " "))
		out, err := say(c.Argv)
		return Output{Stdout: []byte(out)}, err
	}
	w := NewWorld(h, nil)
	t.Cleanup(w.Close)
	return w, &asked
}

const sshBlock = `Type=notify
Restart=on-failure
NRestarts=0
ExecMainCode=0
ExecMainStatus=0
MainPID=345
RemainAfterExit=no
Result=success
Id=ssh.service
Names=ssh.service sshd.service
Requires=system.slice sysinit.target
Wants=
TriggeredBy=ssh.socket
LoadState=loaded
ActiveState=active
SubState=running
FragmentPath=/lib/systemd/system/ssh.service
UnitFileState=enabled
UnitFilePreset=enabled
ActiveEnterTimestampMonotonic=1234567
CanStart=yes
CanStop=yes
CanReload=yes
NeedDaemonReload=no`

const noneBlock = `Id=none.service
Names=none.service
LoadState=not-found
ActiveState=inactive
SubState=dead
FragmentPath=
UnitFileState=`

func TestManyUnitsAreAskedAboutInOneCall(t *testing.T) {
	w, asked := answers(t, func(argv []string) (string, error) {
		if argv[1] == "is-enabled" {
			return "disabled\n", &CommandError{Argv: argv, Code: 1, Err: errors.New("exit status 1")}
		}
		return sshBlock + "\n\n" + noneBlock + "\n", nil
	})
	found, err := w.units(context.Background(), "sshd.service", "none.service", "sshd.service")
	if err != nil {
		t.Fatal(err)
	}
	ssh, none := found["sshd.service"], found["none.service"]
	if ssh.ID != "ssh.service" || !ssh.running() || !ssh.known() || !ssh.CanReload || !slices.Equal(ssh.TriggeredBy, []string{"ssh.socket"}) {
		t.Errorf("sshd.service: %+v", ssh)
	}
	if ssh.File != "disabled" {
		t.Errorf("the state of its file is %q; the links on disk say disabled", ssh.File)
	}
	if none.known() || none.running() {
		t.Errorf("none.service: %+v", none)
	}
	again, err := w.unit(context.Background(), "ssh.service")
	if err != nil || again != ssh {
		t.Errorf("its real name is asked for again: %v", err)
	}
	if len(*asked) != 2 || !strings.Contains((*asked)[0], " -- sshd.service none.service") || !strings.HasSuffix((*asked)[1], " -- ssh.service") {
		t.Errorf("asked: %q", *asked)
	}
}

func TestAnAnswerThatIsShortIsAnError(t *testing.T) {
	w, _ := answers(t, func([]string) (string, error) { return sshBlock + "\n", nil })
	if _, err := w.units(context.Background(), "ssh.service", "none.service"); err == nil || !strings.Contains(err.Error(), "answered about 1") {
		t.Errorf("%v", err)
	}
}

func TestAUnitWithoutAFileDoesNotHideTheOthers(t *testing.T) {
	w, asked := answers(t, func(argv []string) (string, error) {
		if argv[1] == "show" {
			return sshBlock + "\n\n" + strings.ReplaceAll(sshBlock, "ssh", "lost") + "\n", nil
		}
		if slices.Contains(argv, "lost.service") {
			return "", &CommandError{Argv: argv, Code: 1, Said: "No such file or directory", Err: errors.New("exit status 1")}
		}
		return "static\n", nil
	})
	found, err := w.units(context.Background(), "ssh.service", "lost.service")
	if err != nil {
		t.Fatal(err)
	}
	if found["ssh.service"].File != "static" || found["lost.service"].File != "enabled" || len(*asked) != 4 {
		t.Errorf("ssh: %s, lost: %s, asked: %q", found["ssh.service"].File, found["lost.service"].File, *asked)
	}
}

func TestNamesOfUnits(t *testing.T) {
	for name, full := range map[string]string{
		"nginx": "nginx.service", "nginx.service": "nginx.service", "a.socket": "a.socket", "getty@tty1": "getty@tty1.service", "x.conf": "x.conf.service",
	} {
		if got := unitName(name); got != full {
			t.Errorf("%s: %s", name, got)
		}
		if wrong := checkUnitName("unit", name); wrong != nil {
			t.Errorf("%s is refused: %v", name, wrong)
		}
	}
	for name, says := range map[string]string{
		"": "empty", "/etc/x": "path", "a b": "character", ".service": "end of a name", "getty@.service": `"getty@NAME.service"`,
		"*": "character", "-x@": "instance", strings.Repeat("x", 250): "255",
	} {
		wrong := checkUnitName("unit", name)
		if len(wrong) != 1 || !strings.Contains(wrong[0].Summary+wrong[0].Detail, says) {
			t.Errorf("%q: %v", name, wrong)
		}
	}
	if unitTemplate("getty@tty1.service") != "getty@.service" || unitTemplate("ssh.service") != "" {
		t.Error("templates")
	}
}
