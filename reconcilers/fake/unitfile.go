package fake

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"sort"
	"strings"
)

// dirs are where unit files lie, the strongest first.
var dirs = []string{
	"/etc/systemd/system", "/run/systemd/system", "/run/systemd/generator", "/usr/local/lib/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system",
}

// A definition is a unit file with its drop-ins: values by section and name.
type definition map[string][]string

func parse(text string) definition {
	d := definition{}
	section := ""
	for _, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			section = strings.Trim(line, "[]")
			continue
		}
		if key, value, ok := strings.Cut(line, "="); ok && !strings.HasPrefix(line, "#") {
			name := section + "." + strings.TrimSpace(key)
			d[name] = append(d[name], strings.TrimSpace(value))
		}
	}
	return d
}

// one is a value of which the last counts.
func (d definition) one(section, key string) string {
	all := d[section+"."+key]
	if len(all) == 0 {
		return ""
	}
	return all[len(all)-1]
}

// list is a value that is a list of words.
func (d definition) list(section, key string) []string {
	return strings.Fields(strings.Join(d[section+"."+key], " "))
}

func (d definition) installable() bool {
	return len(d.list("Install", "WantedBy"))+len(d.list("Install", "RequiredBy"))+len(d.list("Install", "Alias")) > 0
}

// lifetime is how long a unit's program runs by itself, in microseconds; 0: for ever.
func lifetime(d definition) int64 {
	switch exec := d.one("Service", "ExecStart"); {
	case strings.HasPrefix(exec, "/fake/dies"):
		return 1_000_000
	case strings.HasPrefix(exec, "/fake/ends"):
		return 500_000
	case strings.HasPrefix(exec, "/fake/fail"):
		return 1
	}
	return 0
}

// A place is a unit's file as it is found on disk.
type place struct {
	id     string // the unit's real name
	path   string // "" where there is none
	linked bool   // the file lies elsewhere, and a link leads to it
	masked string // the directory of the mask
	text   string // with its drop-ins
}

func (p place) known() bool { return p.path != "" || p.masked != "" }

// find looks a unit's file up.
func (s *Systemd) find(name string) place {
	for _, dir := range dirs {
		at := dir + "/" + name
		target, err := os.Readlink(s.Root + at)
		if err == nil {
			switch base := path.Base(target); {
			case target == "/dev/null":
				return place{id: name, masked: dir}
			case base != name:
				if to := s.find(base); to.known() {
					return to
				}
				continue
			}
			if !path.IsAbs(target) {
				target = path.Join(dir, target)
			}
			if data, err := os.ReadFile(s.Root + target); err == nil {
				return place{id: name, path: at, text: string(data) + s.dropIns(name), linked: !slices.Contains(dirs, path.Dir(target))}
			}
			continue
		}
		data, err := os.ReadFile(s.Root + at)
		if err != nil {
			continue
		}
		if len(data) == 0 {
			return place{id: name, masked: dir}
		}
		return place{id: name, path: at, text: string(data) + s.dropIns(name)}
	}
	if prefix, instance, ok := strings.Cut(name, "@"); ok && !strings.HasPrefix(instance, ".") {
		of := s.find(prefix + "@" + path.Ext(name))
		of.id = name
		of.text += s.dropIns(name)
		return of
	}
	return place{id: name}
}

func (s *Systemd) dropIns(name string) string {
	text := ""
	for i := len(dirs) - 1; i >= 0; i-- {
		files, _ := filepath.Glob(s.Root + dirs[i] + "/" + name + ".d/*.conf")
		sort.Strings(files)
		for _, file := range files {
			if data, err := os.ReadFile(file); err == nil {
				text += "\n" + string(data)
			}
		}
	}
	return text
}

// links are the links in a directory of units, and in the directories in it by which
// units want each other; dirs relative to the directory.
func (s *Systemd) links(dir string) map[string]string {
	found := map[string]string{}
	collect := func(below string) []os.DirEntry {
		entries, _ := os.ReadDir(s.Root + path.Join(dir, below)) // none where there is no such directory
		for _, e := range entries {
			at := path.Join(below, e.Name())
			if e.Type()&os.ModeSymlink == 0 {
				continue
			}
			if target, err := os.Readlink(s.Root + path.Join(dir, at)); err == nil {
				found[at] = target
			}
		}
		return entries
	}
	for _, e := range collect("") {
		if e.IsDir() && slices.Contains([]string{".wants", ".requires", ".upholds"}, path.Ext(e.Name())) {
			collect(e.Name())
		}
	}
	return found
}

// fileState is what is-enabled says.
func (s *Systemd) fileState(name string) string {
	p := s.find(name)
	suffix := func(dir string) string {
		if strings.HasPrefix(dir, "/run/") {
			return "-runtime"
		}
		return ""
	}
	switch {
	case p.masked != "":
		return "masked" + suffix(p.masked)
	case p.path == "":
		return ""
	case p.id != name:
		return "alias"
	case strings.HasPrefix(p.path, "/run/systemd/generator"):
		return "generated"
	}
	d := parse(p.text)
	indirect := false
	for _, dir := range dirs[:2] {
		for at, target := range s.links(dir) {
			switch {
			case path.Dir(at) != "." && path.Base(at) == name, slices.Contains(d.list("Install", "Alias"), at) && path.Base(target) == name:
				return "enabled" + suffix(dir)
			case path.Dir(at) == "." && at != name && path.Base(target) == name:
				indirect = true
			}
		}
	}
	switch {
	case p.linked:
		return "linked" + suffix(p.path)
	case indirect:
		return "indirect"
	case d.installable():
		return "disabled"
	case len(d.list("Install", "Also")) > 0:
		return "indirect"
	}
	return "static"
}

// install makes the links that enabling a unit makes; or, with off, takes all that
// lead to it.
func (s *Systemd) install(name, dir string, off bool, seen map[string]bool) error {
	if seen[name] {
		return nil
	}
	seen[name] = true
	p := s.find(name)
	d := parse(p.text)
	for _, also := range d.list("Install", "Also") {
		if err := s.install(also, dir, off, seen); err != nil {
			return err
		}
	}
	if off {
		return s.takeLinks(p.id, dir)
	}
	for key, sub := range map[string]string{"WantedBy": ".wants/", "RequiredBy": ".requires/", "UpheldBy": ".upholds/"} {
		for _, by := range d.list("Install", key) {
			if err := s.link(dir+"/"+by+sub+p.id, p.path); err != nil {
				return err
			}
		}
	}
	for _, alias := range d.list("Install", "Alias") {
		if err := s.link(dir+"/"+alias, p.path); err != nil {
			return err
		}
	}
	return nil
}

func (s *Systemd) takeLinks(id, dir string) error {
	for at, target := range s.links(dir) {
		if target == "/dev/null" || path.Base(at) != id && path.Base(target) != id {
			continue
		}
		if err := os.Remove(s.Root + dir + "/" + at); err != nil {
			return err
		}
		if sub := path.Dir(at); sub != "." {
			_ = os.Remove(s.Root + dir + "/" + sub) // only if it is empty now
		}
	}
	return nil
}

func (s *Systemd) link(at, target string) error {
	if err := os.MkdirAll(path.Dir(s.Root+at), 0o755); err != nil {
		return err
	}
	if was, err := os.Readlink(s.Root + at); err == nil && was == target {
		return nil
	}
	return os.Symlink(target, s.Root+at)
}
