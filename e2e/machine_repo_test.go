package e2e

import (
	"crypto/sha256"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// A tiny is a package made on the spot. Its files belong to root and have mode 0644,
// or 0755 if they begin with #!; its scripts are whole files, or the body of one for sh.
type tiny struct {
	Name, Version, Arch string // by default 1.0, all
	Depends, Recommends string
	PreDepends          string
	Provides, Conflicts string
	Breaks, Replaces    string
	Essential           bool
	Files               map[string]string // by absolute path
	Conffiles           []string
	Preinst, Postinst   string
	Prerm, Postrm       string
	Config, Templates   string // debconf's
	Triggers            string
}

// file is the name of its .deb.
func (p tiny) file() string {
	return fmt.Sprintf("%s_%s_%s.deb", p.Name, strings.ReplaceAll(p.version(), ":", "~"), p.arch())
}

func (p tiny) version() string {
	if p.Version == "" {
		return "1.0"
	}
	return p.Version
}

func (p tiny) arch() string {
	if p.Arch == "" {
		return "all"
	}
	return p.Arch
}

func (p tiny) control() string {
	var b strings.Builder
	essential := ""
	if p.Essential {
		essential = "yes"
	}
	for _, field := range [][2]string{
		{"Package", p.Name},
		{"Version", p.version()},
		{"Architecture", p.arch()},
		{"Essential", essential},
		{"Maintainer", "Nobody <nobody@localhost>"},
		{"Pre-Depends", p.PreDepends},
		{"Depends", p.Depends},
		{"Recommends", p.Recommends},
		{"Provides", p.Provides},
		{"Conflicts", p.Conflicts},
		{"Breaks", p.Breaks},
		{"Replaces", p.Replaces},
		{"Section", "misc"},
		{"Priority", "optional"},
		{"Description", "a package of a test"},
	} {
		if field[1] != "" {
			fmt.Fprintf(&b, "%s: %s\n", field[0], field[1])
		}
	}
	return b.String()
}

// members is what lies in its DEBIAN directory.
func (p tiny) members() map[string]string {
	all := map[string]string{"control": p.control(), "templates": p.Templates, "triggers": p.Triggers}
	if len(p.Conffiles) > 0 {
		all["conffiles"] = strings.Join(p.Conffiles, "\n") + "\n"
	}
	for name, script := range map[string]string{"preinst": p.Preinst, "postinst": p.Postinst, "prerm": p.Prerm, "postrm": p.Postrm, "config": p.Config} {
		if script != "" && !strings.HasPrefix(script, "#!") {
			script = "#!/bin/sh\nset -e\n" + script
		}
		all[name] = script
	}
	maps.DeleteFunc(all, func(_, text string) bool { return text == "" })
	return all
}

// build makes its .deb in a directory.
func (p tiny) build(dir string) error {
	tree, err := os.MkdirTemp("", "golem-tiny-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tree)
	files := map[string]string{}
	for name, text := range p.members() {
		files["DEBIAN/"+name] = text
	}
	maps.Copy(files, p.Files)
	if err := os.Chmod(tree, 0o755); err != nil {
		return err
	}
	for name, text := range files {
		path, mode := filepath.Join(tree, name), os.FileMode(0o644)
		if strings.HasPrefix(text, "#!") {
			mode = 0o755
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			return err
		}
		if err := os.Chmod(path, mode); err != nil { // whatever the umask
			return err
		}
	}
	cmd := exec.Command("dpkg-deb", "--root-owner-group", "-Znone", "--build", tree, filepath.Join(dir, p.file()))
	cmd.Env = append(os.Environ(), "SOURCE_DATE_EPOCH=1700000000")
	return quiet(cmd)
}

// unitPackage ships a service that sleeps, and does with it what debhelper has a
// package do: enable and start it, stop it, and forget it when purged.
func unitPackage(name string) tiny {
	unit := name + ".service"
	return tiny{
		Name:    name,
		Depends: "init-system-helpers",
		Files: map[string]string{
			"/lib/systemd/system/" + unit: "[Unit]\nDescription=" + name + " of a test\n\n[Service]\nExecStart=/bin/sleep infinity\n\n[Install]\nWantedBy=multi-user.target\n",
		},
		Postinst: generated("dh_installsystemd", `if [ "$1" = "configure" ] || [ "$1" = "abort-upgrade" ] || [ "$1" = "abort-deconfigure" ] || [ "$1" = "abort-remove" ] ; then
	deb-systemd-helper unmask '`+unit+`' >/dev/null || true
	if deb-systemd-helper --quiet was-enabled '`+unit+`'; then
		deb-systemd-helper enable '`+unit+`' >/dev/null || true
	else
		deb-systemd-helper update-state '`+unit+`' >/dev/null || true
	fi
	if [ -d /run/systemd/system ]; then
		systemctl --system daemon-reload >/dev/null || true
		if [ -n "$2" ]; then
			_dh_action=restart
		else
			_dh_action=start
		fi
		deb-systemd-invoke $_dh_action '`+unit+`' >/dev/null || true
	fi
fi
`),
		Prerm: generated("dh_installsystemd", `if [ -z "${DPKG_ROOT:-}" ] && [ "$1" = remove ] && [ -d /run/systemd/system ] ; then
	deb-systemd-invoke stop '`+unit+`' >/dev/null || true
fi
`),
		Postrm: generated("dh_installsystemd", `if [ "$1" = remove ] && [ -d /run/systemd/system ] ; then
	systemctl --system daemon-reload >/dev/null || true
fi
`) + generated("dh_installsystemd", `if [ "$1" = "purge" ]; then
	if [ -x "/usr/bin/deb-systemd-helper" ]; then
		deb-systemd-helper purge '`+unit+`' >/dev/null || true
	fi
fi
`),
	}
}

// generated is a piece of a script between the marks of the debhelper tool that wrote it.
func generated(tool, text string) string {
	return "# Automatically added by " + tool + "/13.11.4\n" + text + "# End automatically added section\n"
}

// repo puts packages into the machine's archive, and has apt read it.
func (m *machine) repo(packages ...tiny) {
	m.t.Helper()
	dir := m.inside("/srv/repo")
	index := m.index()
	for _, p := range packages {
		m.check(p.build(dir))
		stanza, err := archiveStanza(filepath.Join(dir, p.file()))
		m.check(err)
		index[p.file()] = stanza
	}
	m.setIndex(index)
}

// repoDrop takes a package's version out of the machine's archive, and has apt read it.
func (m *machine) repoDrop(name, version string) {
	m.t.Helper()
	index, prefix := m.index(), name+"_"+strings.ReplaceAll(version, ":", "~")+"_"
	n := len(index)
	for file := range index {
		if strings.HasPrefix(file, prefix) {
			delete(index, file)
			m.check(os.Remove(filepath.Join(m.inside("/srv/repo"), file)))
		}
	}
	if len(index) == n {
		m.t.Fatalf("the archive has no %s %s", name, version)
	}
	m.setIndex(index)
}

// index is the archive's Packages file, by the names of the .debs.
func (m *machine) index() map[string]string {
	m.t.Helper()
	index := map[string]string{}
	for stanza := range strings.SplitSeq(m.read("/srv/repo/Packages"), "\n\n") {
		_, rest, found := strings.Cut(stanza, "\nFilename: ./")
		if file, _, _ := strings.Cut(rest, "\n"); found {
			index[file] = stanza + "\n\n"
		}
	}
	return index
}

func (m *machine) setIndex(index map[string]string) {
	m.t.Helper()
	var b strings.Builder
	for _, file := range slices.Sorted(maps.Keys(index)) {
		b.WriteString(index[file])
	}
	m.write("/srv/repo/Packages", b.String())
	m.must("apt-get", "update", "-q")
}

// archiveIndex is the Packages file of a flat archive.
func archiveIndex(dir string) (string, error) {
	debs, err := filepath.Glob(filepath.Join(dir, "*.deb"))
	if err != nil {
		return "", err
	}
	slices.Sort(debs)
	var b strings.Builder
	for _, deb := range debs {
		stanza, err := archiveStanza(deb)
		if err != nil {
			return "", err
		}
		b.WriteString(stanza)
	}
	return b.String(), nil
}

// archiveStanza is what a Packages file says of one .deb.
func archiveStanza(deb string) (string, error) {
	control, err := exec.Command("dpkg-deb", "-f", deb).Output()
	if err != nil {
		return "", fmt.Errorf("dpkg-deb -f %s: %w", deb, err)
	}
	f, err := os.Open(deb)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	size, err := io.Copy(sum, f)
	if err != nil {
		return "", fmt.Errorf("hash %s: %w", deb, err)
	}
	return fmt.Sprintf("%sFilename: ./%s\nSize: %d\nSHA256: %x\n\n", control, filepath.Base(deb), size, sum.Sum(nil)), nil
}
