package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// traced runs golem under strace and returns the calls, one a line, in order, with the
// paths of descriptors written out.
func (b *box) traced(calls string, args ...string) []string {
	b.t.Helper()
	needStrace(b.t)
	out := filepath.Join(b.dir, "trace")
	cmd := b.command(args...)
	cmd.Args = append([]string{"sh", "-c", `umask 000; exec "$@"`, "sh", "strace", "-f", "-y", "-s", "0", "-o", out, "-e", "trace=" + calls}, cmd.Args...)
	cmd.Path = "/bin/sh"
	if a := b.finish(cmd); a.code != 0 {
		b.t.Fatalf("golem %v under strace: exit %d\n%s%s", args, a.code, a.stdout, a.stderr)
	}
	data, err := os.ReadFile(out)
	b.must(err)
	return whole(strings.Split(string(data), "\n"))
}

var resumed = regexp.MustCompile(`^(\d+) +<\.\.\. \w+ resumed>`)

// whole puts calls together that strace cut in two, at the place where they ended.
func whole(lines []string) []string {
	open := map[string]string{}
	var calls []string
	for _, line := range lines {
		pid, rest, _ := strings.Cut(line, " ")
		if head, cut := strings.CutSuffix(rest, "<unfinished ...>"); cut {
			open[pid] = head
			continue
		}
		if at := resumed.FindStringIndex(line); at != nil {
			rest = open[pid] + line[at[1]:]
		}
		calls = append(calls, strings.TrimSpace(rest))
	}
	return calls
}

// A secret file is never readable for a moment, whatever the umask: its temporary file
// is made 0600, has its whole content, and only then gets the mode it is to have.
func TestReport22ASecretFileIsNeverReadable(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.declare("file \"/etc/secret\" {\n  content = \"s3cr3t\\n\"\n  mode = \"0444\"\n  sensitive = true\n}\n")
	calls := b.traced("openat,openat2,creat,write,pwrite64,copy_file_range,fchmod,fchmodat,chmod,renameat,renameat2,rename,linkat", "apply", "--auto-approve", b.scroll)

	made := regexp.MustCompile(`^openat.*tree/etc.*O_CREAT.*= (\d+)<(.*/tree/etc/[^>]*)>`)
	fd, temp, state := "", "", ""
	for _, call := range calls {
		if m := made.FindStringSubmatch(call); m != nil {
			if temp != "" {
				t.Fatalf("a second file is made: %s", call)
			}
			if !strings.Contains(call, "O_EXCL") || !strings.Contains(call, "0600") {
				t.Errorf("the temporary file is not made for golem alone: %s", call)
			}
			fd, temp, state = m[1], m[2], "made"
			continue
		}
		if temp == "" || !strings.Contains(call, temp) && !strings.Contains(call, filepath.Base(temp)) {
			continue
		}
		switch name, _, _ := strings.Cut(call, "("); {
		case strings.Contains(name, "write") || name == "copy_file_range":
			if state == "chmod" {
				t.Errorf("content after the mode: %s", call)
			}
			state = "written"
		case strings.Contains(name, "chmod"):
			if state != "written" {
				t.Errorf("the mode before the content (%s): %s", state, call)
			}
			state = "chmod"
		case strings.Contains(name, "rename") || name == "linkat":
			if state != "chmod" {
				t.Errorf("the name before the mode (%s): %s", state, call)
			}
			state = "named"
		}
	}
	if state != "named" {
		t.Errorf("the temporary file (%q, %q) ended as %q:\n%s", fd, temp, state, strings.Join(calls, "\n"))
	}
	for name, want := range map[string]os.FileMode{
		b.journal: 0o600, b.journal + ".lock": 0o600, filepath.Dir(b.journal): 0o700, b.tree + "/etc/secret": 0o444,
	} {
		st, err := os.Stat(name)
		b.must(err)
		if st.Mode().Perm() != want {
			t.Errorf("%s has mode %v, want %v", name, st.Mode().Perm(), want)
		}
	}
}
