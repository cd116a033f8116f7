package reconcilers

import (
	"context"
	"crypto/md5"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A Proposal is one thing that differs from what the host's packages would have.
type Proposal struct{ Kind, ID, Why string }

// A Part is the proposals for one leaf.
type Part struct {
	Leaf      string
	Proposals []Proposal
}

// Scanned is what a look through a whole host found.
type Scanned struct {
	Parts []Part
	// Notes tell what differs and cannot be proposed, or is not.
	Notes []string
}

// Scan looks through a Debian host for what somebody made of it: packages that were
// installed by hand, files in /etc and /usr/local that no package has, or that were changed
// since, crontabs, and units whose enablement is not their preset. It only reads.
func Scan(ctx context.Context, w *World) (*Scanned, error) {
	if !w.Host.Live() || !w.Host.systemd() {
		return nil, errors.New("scan the host: that needs a Debian host that systemd runs, and no other root")
	}
	own, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("scan the host: %w", err)
	}
	s := &scanner{ctx: ctx, w: w, found: &Scanned{}, golem: own}
	for _, part := range []struct {
		leaf string
		look func() ([]Proposal, error)
	}{
		{"packages", s.packages}, {"files", s.files}, {"crontabs", s.crontabs}, {"services", s.units},
	} {
		found, err := part.look()
		if err != nil {
			return nil, fmt.Errorf("scan the host's %s: %w", part.leaf, err)
		}
		s.found.Parts = append(s.found.Parts, Part{part.leaf, found})
	}
	return s.found, nil
}

type scanner struct {
	ctx   context.Context
	w     *World
	found *Scanned
	golem string // this program's own file
	// shipped are the paths that packages have, and conffiles their hashes by path.
	shipped   map[string]bool
	conffiles map[string]shippedConf
}

type shippedConf struct{ sum, owner string }

// packages lists those that are marked as installed by hand, but for what every Debian has.
func (s *scanner) packages() ([]Proposal, error) {
	out, err := s.w.Host.Run(s.ctx, lookTime, "dpkg-query", "-W", "-f", "${binary:Package}\t${Priority}\t${Essential}\t${db:Status-Status}\n")
	if err != nil {
		return nil, err
	}
	base := map[string]bool{}
	for _, line := range lines(out.Stdout) {
		if part := strings.Split(line, "\t"); len(part) == 4 && (part[1] == "required" || part[1] == "important" || part[2] == "yes") {
			name, _, _ := strings.Cut(part[0], ":")
			base[name] = true
		}
	}
	if out, err = s.w.Host.Run(s.ctx, lookTime, "apt-mark", "showmanual"); err != nil {
		return nil, err
	}
	var all []Proposal
	for _, name := range lines(out.Stdout) {
		if !base[name] {
			all = append(all, Proposal{aptKindName, name, "installed by hand"})
		}
	}
	return all, nil
}

// files lists what in /etc and /usr/local is not as packages have it.
func (s *scanner) files() ([]Proposal, error) {
	if err := s.readPackages(); err != nil {
		return nil, err
	}
	var all []Proposal
	for _, dir := range []string{"/etc", "/usr/local"} {
		err := filepath.WalkDir(dir, func(p string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if entry.IsDir() {
				return nil
			}
			proposal, err := s.file(p, entry)
			if err == nil && proposal != nil {
				all = append(all, *proposal)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// selfMade are files in /etc that programs write by themselves: what they are made from is
// declared instead, or nothing.
var selfMade = regexp.MustCompile(`^/etc/(passwd|shadow|group|gshadow|subuid|subgid)-?$|^/etc/(machine-id|mtab|adjtime|ld\.so\.cache|\.pwd\.lock|resolv\.conf|ld\.so\.conf\.d/.*)$|` +
	`^/etc/(alternatives|ssl/certs|rc[0-9S]\.d)/|^/etc/.*\.(dpkg-[a-z]+|ucf-[a-z]+)$|^/etc/(golem)/|^/etc/(ca-certificates\.conf|shells|.*~)$`)

// unitLinks are the links that enabling a unit makes: those of a service glyph.
var unitLinksDir = regexp.MustCompile(`^/etc/systemd/(system|user)/`)

// file says what is to be proposed of one file; nil for nothing.
func (s *scanner) file(p string, entry fs.DirEntry) (*Proposal, error) {
	owned, shipped := s.conffiles[p]
	link := entry.Type()&fs.ModeSymlink != 0
	switch {
	case selfMade.MatchString(p), p == s.golem, s.shipped[p] && !shipped, link && unitLinksDir.MatchString(p), !link && !entry.Type().IsRegular():
		return nil, nil
	case link && shipped:
		return &Proposal{"link", p, "a link, where " + owned.owner + " has a file"}, nil
	case link:
		return &Proposal{"link", p, "no package has it"}, nil
	}
	info, err := entry.Info()
	if err != nil {
		return nil, err
	}
	why := "no package has it"
	if shipped {
		sum, err := md5File(p)
		if err != nil || sum == owned.sum {
			return nil, err
		}
		why = "changed since " + owned.owner + " brought it"
	}
	if info.Mode().Perm()&0o004 == 0 {
		s.found.Notes = append(s.found.Notes, fmt.Sprintf("%s (%s): not everybody may read it, so its bytes are not printed; declare it with sensitive = true, from a source", quote(p), why))
		return nil, nil
	}
	return &Proposal{"file", p, why}, nil
}

// readPackages reads what paths packages have, from dpkg's own lists.
func (s *scanner) readPackages() error {
	out, err := s.w.Host.Run(s.ctx, lookTime, "dpkg-query", "-W", "-f", "${Package}\n${Conffiles}\n")
	if err != nil {
		return err
	}
	s.shipped, s.conffiles = map[string]bool{}, map[string]shippedConf{}
	owner := ""
	for _, line := range lines(out.Stdout) {
		part := strings.Fields(line)
		switch {
		case len(part) == 1 && !strings.HasPrefix(part[0], "/"):
			owner = part[0]
		case len(part) == 2: // a third word says that it is obsolete
			s.conffiles[part[0]] = shippedConf{part[1], owner}
		}
	}
	lists, err := filepath.Glob("/var/lib/dpkg/info/*.list")
	if err != nil {
		return err
	}
	for _, list := range lists {
		data, err := os.ReadFile(list)
		if err != nil {
			return err
		}
		for _, p := range lines(data) {
			s.shipped[p] = true
		}
	}
	for p := range s.conffiles {
		if n, err := s.w.Host.observe(s.w.d, p, 0); err != nil {
			return err
		} else if n.Type == Absent {
			s.found.Notes = append(s.found.Notes, fmt.Sprintf("%s of %s was removed by hand", quote(p), s.conffiles[p].owner))
		}
	}
	slices.Sort(s.found.Notes)
	return nil
}

// crontabs lists the crontabs of users. They lie where only root reads, and are what they
// are for.
func (s *scanner) crontabs() ([]Proposal, error) {
	names, err := filepath.Glob("/var/spool/cron/crontabs/*")
	var all []Proposal
	for _, p := range names {
		all = append(all, Proposal{"file", p, "the crontab of " + path.Base(p)})
	}
	return all, err
}

// units lists units whose enablement is not their preset, and masked ones.
func (s *scanner) units() ([]Proposal, error) {
	out, err := s.w.Host.Run(s.ctx, lookTime, "systemctl", "list-unit-files", "--no-legend", "--no-pager", "--plain")
	if err != nil {
		return nil, err
	}
	var all []Proposal
	for _, line := range lines(out.Stdout) {
		part := strings.Fields(line)
		if len(part) < 2 || strings.Contains(part[0], "@.") {
			continue
		}
		preset := ""
		if len(part) > 2 {
			preset = part[2]
		}
		switch state := part[1]; {
		case state == "masked" && s.w.maskedHere(part[0]):
			all = append(all, Proposal{"service", part[0], "masked"})
		case state == "enabled" && preset == "disabled", state == "disabled" && preset == "enabled":
			all = append(all, Proposal{"service", part[0], state + ", and " + preset + " by its preset"})
		case state == "enabled" && s.own(part[0]):
			all = append(all, Proposal{"service", part[0], "enabled, and of no package"})
		}
	}
	return all, nil
}

// own says whether a unit's file lies where an operator's do, and no package has it.
func (s *scanner) own(unit string) bool {
	p := "/etc/systemd/system/" + unit
	n, err := s.w.look(p)
	return err == nil && n.Type == File && !s.shipped[p]
}

func lines(out []byte) []string {
	text := strings.TrimSuffix(string(out), "\n")
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

// md5File is a file's hash as dpkg has it.
func md5File(p string) (string, error) {
	f, err := os.Open(p)
	if err != nil {
		return "", err
	}
	defer f.Close()
	hash := md5.New()
	if _, err := io.Copy(hash, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}
