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

func (e *AptError) Error() string { return "apt: " + e.Said }
func (e *AptError) Unwrap() error { return e.Err }

// aptSaid finds in what apt printed why it refused.
func aptSaid(out Output, err error) error {
	var failed *CommandError
	if !errors.As(err, &failed) || failed.Code < 0 {
		return err
	}
	var said []string
	unmet := false
	for _, line := range strings.Split(string(out.Stdout), "\n") {
		switch {
		case strings.HasPrefix(line, "The following packages have unmet dependencies"):
			unmet = true
		case unmet && strings.HasPrefix(line, " "):
			said = append(said, strings.Join(strings.Fields(line), " "))
		default:
			unmet = false
		}
	}
	for _, line := range strings.Split(string(out.Stderr), "\n") {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "W: ") && !strings.HasPrefix(line, "N: ") {
			said = append(said, strings.TrimPrefix(line, "E: "))
		}
	}
	if len(said) == 0 {
		return err
	}
	return &AptError{strings.Join(said, "; "), err}
}
