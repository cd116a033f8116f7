package reconcilers

import (
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"golem/reconcilers/entry"
	"golem/scrolls"
)

// formatsByName are the formats of files that are known by their names: the first
// pattern that fits decides. A pattern without a slash is about the last name.
var formatsByName = []struct {
	format   string
	patterns []string
}{
	{"keyword", []string{
		"/etc/ssh/sshd_config", "/etc/ssh/ssh_config", "/etc/ssh/sshd_config.d/*.conf", "/etc/ssh/ssh_config.d/*.conf",
		"sshd_config", "ssh_config", "**/.ssh/config",
	}},
	{"toml", []string{"*.toml", "/etc/containers/**/*.conf", "/usr/share/containers/**/*.conf", "/etc/crio/**/*.conf", "Pipfile", "Cargo.lock", "poetry.lock", "uv.lock"}},
	{"json", []string{
		"*.json", "*.jsonc", "*.webmanifest", "*.code-workspace", "composer.lock", "Pipfile.lock", "flake.lock",
		".babelrc", ".eslintrc", ".jshintrc",
	}},
	{"yaml", []string{"*.yaml", "*.yml", "/etc/cloud/**/*.cfg", ".clang-format", ".clang-tidy", ".yamllint"}},
	{"env", []string{
		"*.env", ".env", ".env.*", "/etc/environment", "/etc/default/*", "/etc/sysconfig/*", "/etc/locale.conf",
		"/etc/vconsole.conf", "os-release", "lsb-release",
	}},
	{"ini", []string{
		"*.ini", "*.service", "*.socket", "*.timer", "*.mount", "*.automount", "*.swap", "*.path", "*.target", "*.slice",
		"*.scope", "*.device", "*.network", "*.netdev", "*.link", "*.nspawn", "*.container", "*.volume", "*.kube", "*.pod",
		"*.desktop", "*.directory", "/etc/systemd/**/*.conf", "**/systemd/**/*.d/*.conf", "*.cnf", "*.cfg", "*.gitconfig", "gitconfig",
		".gitconfig", "**/.git/config", "**/git/config", ".gitmodules", ".editorconfig", "pip.conf", "*.repo",
		"/etc/NetworkManager/**/*.conf", "*.nmconnection", "smb.conf", ".hgrc", ".npmrc", "setup.cfg", "tox.ini",
	}},
}

// formatOf is the format of a glyph's file: the one that is written, else the one that the
// file's name says; "" for none.
func formatOf(a scrolls.Attrs) string {
	if format := str(a, "format"); format != "" {
		return format
	}
	file := str(a, "path")
	for _, known := range formatsByName {
		if slices.ContainsFunc(known.patterns, func(pattern string) bool { return named(file, pattern) }) {
			return known.format
		}
	}
	return ""
}

func named(file, pattern string) bool {
	if !strings.Contains(pattern, "/") {
		file = path.Base(file)
	}
	return doublestar.MatchUnvalidated(pattern, file)
}

// formatNames lists the formats for a message.
func formatNames() string {
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(entry.Formats)), func(name string) bool { return name == "jsonc" })
	for i, name := range names {
		names[i] = strconv.Quote(name)
	}
	return orList(names)
}

func orList(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}
