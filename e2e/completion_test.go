package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// A shell is one that completes, and how it is started at a terminal.
type shell struct {
	argv  []string
	setUp string
}

var completing = map[string]shell{
	"bash": {[]string{"bash", "--norc", "--noprofile", "-i"}, "bind 'set enable-bracketed-paste off'; source <(golem completion bash)"},
	"zsh":  {[]string{"zsh", "-f", "-i"}, "unset zle_bracketed_paste; autoload -Uz compinit; compinit -D -u; source <(golem completion zsh)"},
	"fish": {[]string{"fish", "--no-config", "-i"}, "golem completion fish | source"},
}

// TestShellsComplete types the beginnings of words and a tab at each shell's own prompt, runs
// the line that comes of it, and reads what golem makes of that.
func TestShellsComplete(t *testing.T) {
	t.Parallel()
	for name, sh := range completing {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(sh.argv[0]); err != nil {
				if os.Getenv("CI") == "true" {
					t.Fatal(err)
				}
				t.Skip(err)
			}
			r := newRunner(t)
			r.write(t, "s.hcl", exampleScroll, 0o644)
			r.write(t, "tree/etc/hosts", "127.0.0.1 localhost\n", 0o644)
			r.sh(t, "golem apply --auto-approve s.hcl >apply.txt; echo by hand >tree/etc/motd; golem apply --auto-approve --var port=80 s.hcl >apply.txt")
			term := newTerminal(t, 200)
			cmd := exec.Command(sh.argv[0], sh.argv[1:]...)
			cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = r.dir, term.tty, term.tty, term.tty
			cmd.Env = []string{"PATH=" + r.dir + "/bin:" + os.Getenv("PATH"), "HOME=" + r.dir, "TERM=xterm", "LC_ALL=C.UTF-8", "XDG_DATA_HOME=" + r.dir, "NO_COLOR=1"}
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				_ = cmd.Process.Kill()
				_ = cmd.Wait()
			})
			term.typeIn(sh.setUp + "; echo set''up\n")
			term.await("setup")
			for _, line := range []struct{ typed, says string }{
				{"golem exp\tarc\t\n", "# archive"},                                         // a command, and a kind
				{"golem plan --tar\tba\ts.h\t\n", "golem plan · web on "},                   // a flag, a leaf, and a file
				{"golem plan --target=file:/etc/ngi\t --drift s.hcl\n", "since revision 2"}, // a flag's value behind =
				{"golem state sh\tfile:/etc/ho\t\n", "/etc/ho"},                             // a command's command
				{"golem state show file:/etc/mo\t\n", "web@2, leaf base"},                   // a key, with its colon
				{"golem show --against 1 2\t\n", "web@2  "},                                 // a revision
				{"golem kept sh\t--di\t1\n", "kept 1 against now: "},                        // a flag of a command's command
				{"golem history --name w\t\n", "settled"},                                   // a lineage
				{"golem graph --format d\ts.hcl\n", "digraph \"web\""},                      // a flag's own words
				{"golem completion f\t | head -n 1\n", "# Completion of golem for fish"},
			} {
				from := len(term.shown())
				term.typeIn(line.typed + "echo do''ne " + filepath.Base(r.dir) + "\n")
				term.awaitAfter(from, line.says)
				term.awaitAfter(from, "done ")
			}
		})
	}
}
