package reconcilers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// aptGet is apt-get with what every call of golem's has: no question, nothing removed of
// its own accord.
func aptGet(more ...string) []string {
	return append([]string{"apt-get", "-y", "-q", "-o", "APT::Get::AutomaticRemove=false"}, more...)
}

// A pkgEffect is what a transaction does to one package.
type pkgEffect struct {
	Resource string `json:"resource"`
	From     Pkg    `json:"from"`
	To       Pkg    `json:"to"`
	// Purge says that its configuration goes, too.
	Purge bool `json:"purge,omitempty"`
	// Deb is the package file in the journal of what To says, for a version that no
	// archive has.
	Deb *deb `json:"deb,omitempty"`
	// Back is that of what From says, for the way back.
	Back *deb `json:"back,omitempty"`
	// Files are its configuration files as they were before, After what some of them are
	// to be when all is done.
	Files []pkgFile `json:"files,omitempty"`
	After []pkgFile `json:"after,omitempty"`
	// Unmade is how it goes, if it was not there and the step is taken back: purgeTrue,
	// purgeFalse, or "" for auto.
	Unmade string `json:"unmade,omitempty"`
	// Own says that a glyph of the batch asked for it.
	Own bool `json:"own,omitempty"`
}

// stays says that it is not taken back: an upgrade for another's sake.
func (e pkgEffect) stays() bool { return !e.Own && e.From.there() && e.To.there() }

// arg is how apt is told to do this: "name=version", "name-", or a file.
func (e pkgEffect) arg(files *debFiles) (string, error) {
	switch {
	case !e.To.there():
		return e.Resource + "-", nil
	case e.Deb != nil:
		return files.write(e.Resource, e.To.Version, *e.Deb)
	}
	return e.Resource + "=" + e.To.Version, nil
}

// debFiles are packages of the journal, written out for apt, which takes none from
// anywhere but a file.
type debFiles struct {
	h     *Host
	blobs Blobs
	dir   string
}

func (f *debFiles) write(resource, version string, d deb) (string, error) {
	if f.dir == "" {
		dir, err := f.h.scratchDir("debs")
		if err != nil {
			return "", fmt.Errorf("write out %s: %w", resource, err)
		}
		f.dir = dir
	}
	name, _, _ := strings.Cut(resource, ":")
	file := filepath.Join(f.dir, name+"_"+strings.ReplaceAll(version, ":", "%3a")+"_"+d.Arch+".deb")
	src, _, err := f.blobs.OpenBlob(d.Blob)
	if err != nil {
		return "", fmt.Errorf("write out %s %s: %w", resource, version, err)
	}
	defer src.Close()
	dst, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err == nil {
		_, err = dst.ReadFrom(src)
		err = errors.Join(err, dst.Close())
	}
	return file, wrap(err, "write out", resource)
}

func (f *debFiles) remove() error {
	if f.dir == "" {
		return nil
	}
	return os.RemoveAll(f.dir)
}

var simulated = regexp.MustCompile(`^(Inst|Remv|Purg) (\S+)(?: \[([^\]]*)\])?(?: \((\S+) .*\[([^\]]+)\]\))?`)

// A simLine is what apt says that it would do to one package.
type simLine struct {
	resource string
	version  string // "" for a removal
}

// simulate asks apt what it would do. It consents to everything: what golem does not, it
// refuses itself, and better.
func (v *dpkgView) simulate(ctx context.Context, h *Host, verb string, more ...string) ([]simLine, error) {
	argv := aptGet("-s", "-o", "APT::Get::Show-User-Simulation-Note=false", "--allow-downgrades", "--allow-change-held-packages", "--allow-remove-essential")
	out, err := h.Run(ctx, dpkgTimeout, append(append(argv, verb), more...)...)
	if err != nil {
		return nil, aptSaid(out, err)
	}
	var lines []simLine
	for _, line := range strings.Split(string(out.Stdout), "\n") {
		m := simulated.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		name, arch, _ := strings.Cut(m[2], ":")
		if arch == "" && m[5] != "" && m[5] != "all" {
			arch = m[5]
		}
		l := simLine{resource: v.resource(name, arch)}
		if m[1] == "Inst" {
			l.version = m[4]
		}
		lines = append(lines, l)
	}
	return lines, nil
}

// An AptError is what apt refused, in its own words.
type AptError struct {
	Said string
	Err  error
}

func (e *AptError) Error() string { return "apt refuses: " + e.Said }
func (e *AptError) Unwrap() error { return e.Err }

// aptSaid finds in what apt, dpkg and the packages' scripts printed why they failed.
func aptSaid(out Output, err error) error {
	var failed *CommandError
	if !errors.As(err, &failed) || failed.Code < 0 {
		return err
	}
	said := append(unmet(string(out.Stdout)), scriptSaid(string(out.Stdout)+"\n"+string(out.Stderr))...)
	for _, line := range strings.Split(string(out.Stderr), "\n") {
		line = strings.TrimSpace(line)
		if e, ok := strings.CutPrefix(line, "E: "); ok || len(said) == 0 && line != "" && !isNoise(line) {
			said = append(said, e)
		}
	}
	if len(said) == 0 {
		return err
	}
	for i := range said {
		said[i] = shorten(strings.TrimSuffix(said[i], "."))
	}
	return &AptError{strings.Join(said, "; "), err}
}

// isNoise says that a line is no reason of anything.
func isNoise(line string) bool {
	return strings.HasPrefix(line, "W: ") || strings.HasPrefix(line, "N: ") || strings.HasPrefix(line, "debconf: ")
}

// unmet are the dependencies that apt says cannot be met.
func unmet(stdout string) []string {
	var said []string
	inside := false
	for _, line := range strings.Split(stdout, "\n") {
		switch {
		case strings.HasPrefix(line, "The following packages have unmet dependencies"):
			inside = true
		case inside && strings.HasPrefix(line, " "):
			said = append(said, strings.Join(strings.Fields(line), " "))
		default:
			inside = false
		}
	}
	return said
}

// maxScriptSaid is how many lines before dpkg's complaint are told.
const maxScriptSaid = 5

var dpkgWorks = regexp.MustCompile(`^(Setting up|Unpacking|Preparing to unpack|Removing|Purging configuration files for|Selecting|Processing triggers for|\(Reading database) `)

// scriptSaid is what dpkg complains of, with what the package's script said before.
func scriptSaid(text string) []string {
	var said, before []string
	complains := false
	for _, line := range strings.Split(text, "\n") {
		line = strings.TrimRight(line, "\r ")
		switch {
		case strings.HasPrefix(line, "dpkg: error"):
			said = append(said, before[max(0, len(before)-maxScriptSaid):]...)
			said = append(said, line)
			before, complains = nil, true
		case complains && strings.HasPrefix(line, " "):
			said[len(said)-1] += " " + strings.TrimSpace(line)
		case dpkgWorks.MatchString(line):
			before, complains = nil, false
		case line != "" && !isNoise(line):
			before, complains = append(before, line), false
		}
	}
	return said
}
