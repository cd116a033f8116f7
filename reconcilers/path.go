package reconcilers

import (
	"path"
	"strings"

	"golem/scrolls"
)

// relative spells a real path from the root's descriptor.
func relative(p string) string {
	if p == "/" {
		return "."
	}
	return strings.TrimPrefix(p, "/")
}

// steps splits a relative path into its names.
func steps(rel string) []string {
	if rel == "." || rel == "" {
		return nil
	}
	return strings.Split(rel, "/")
}

// split parts a real path into its directory and its name.
func split(p string) (dir, name string) {
	dir, name = path.Split(p)
	if dir != "/" {
		dir = strings.TrimSuffix(dir, "/")
	}
	return dir, name
}

// beneath says whether p lies inside dir.
func beneath(p, dir string) bool {
	if dir == "/" {
		return p != "/"
	}
	return len(p) > len(dir) && p[len(dir)] == '/' && strings.HasPrefix(p, dir)
}

// ancestors returns every directory above p but the root, nearest first.
func ancestors(p string) []string {
	var up []string
	for dir, _ := split(p); dir != "/" && dir != ""; dir, _ = split(dir) {
		up = append(up, dir)
	}
	return up
}

// protected are the directories that a system stands on. A glyph may declare what is
// in them, never them.
var protected = map[string]bool{
	"/": true, "/bin": true, "/boot": true, "/dev": true, "/etc": true, "/home": true,
	"/lib": true, "/lib32": true, "/lib64": true, "/libx32": true, "/media": true,
	"/mnt": true, "/opt": true, "/proc": true, "/root": true, "/run": true,
	"/sbin": true, "/srv": true, "/sys": true, "/tmp": true, "/usr": true, "/var": true,
	"/usr/bin": true, "/usr/lib": true, "/usr/lib64": true, "/usr/local": true,
	"/usr/sbin": true, "/usr/share": true, "/var/lib": true, "/var/log": true,
	"/var/tmp": true, "/var/cache": true, "/var/spool": true,
}

// kernelTrees hold no files of anybody's: they are windows into the kernel.
var kernelTrees = []string{"/proc", "/sys", "/dev"}

// checkPath says what is wrong with the path of a glyph, before any host is looked at.
func checkPath(attr, p string) []scrolls.Problem {
	one := func(summary, detail string) []scrolls.Problem {
		return []scrolls.Problem{{Attr: attr, Summary: summary, Detail: detail}}
	}
	switch {
	case p == "":
		return one("Path is empty", "A path must be absolute, like \"/etc/motd\".")
	case strings.ContainsRune(p, 0):
		return one("Path holds a NUL byte", "No file can have such a name.")
	case !strings.HasPrefix(p, "/"):
		return one("Path is not absolute", "\""+p+"\" depends on where golem is run. Write it from the root, like \"/etc/motd\".")
	case p != "/" && path.Clean(p) != p:
		return one("Path is not clean",
			"\""+p+"\" holds \"..\", \".\", a double or a trailing slash. Perhaps a variable in it is empty. Write \""+path.Clean(p)+"\" if that is what is meant.")
	case protected[p]:
		return one("Path is protected",
			"\""+p+"\" is a directory that the system stands on; golem declares what is in it, never the directory itself. Perhaps a variable in it is empty.")
	}
	for _, tree := range kernelTrees {
		if beneath(p, tree) {
			return one("Path is protected", "\""+p+"\" is the kernel's or a device; it cannot be swapped or put back.")
		}
	}
	for _, name := range steps(relative(p)) {
		if len(name) > 255 {
			return one("Path is too long", "A single name in it is longer than 255 bytes.")
		}
	}
	if len(p) > 4000 {
		return one("Path is too long", "It is longer than the 4,000 bytes that golem takes.")
	}
	return nil
}
