package reconcilers

import (
	"fmt"
	"maps"
	"net/url"
	"path"
	"regexp"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/zclconf/go-cty/cty"

	"golem/scrolls"
)

var archiveKind = Kind{
	Sort: archiveSort, shape: "archive:PATH:NAME",
	Kind: scrolls.Kind{
		Name: "archive", Version: 1, LabelAttr: "path",
		Doc: "What a tar or zip archive holds, unpacked into a directory: tar, tar.gz, tar.zst, tar.xz or zip, told apart by " +
			"their bytes. NAME in the key is the archive's file name. " +
			"Every entry is looked at before the first write. An archive with an entry that leads out of the directory, that " +
			"is no file, directory or link, or that is a setuid or setgid file, is refused whole; so is one that unpacks to more than " +
			"100,000 entries, or to more than a gigabyte and 200 times its own size. A local archive is looked at when the plan " +
			"is made, one behind a URL when an apply makes its plan, which downloads it first; a plan alone says that it has not. Permissions and times are the " +
			"archive's, without write permission for everybody and a directory's setgid and sticky bits; owners, ACLs and " +
			"extended attributes are not. A hard link becomes a file of its own. " +
			"Directories that are there are left as they are. A file that another glyph declares is left out with `exclude`. " +
			"Undeclared, exactly its files go, or what they replaced is put back; directories made for it go if they are empty. " +
			"What was changed by hand since is kept first.",
		Attrs: []scrolls.Attr{
			{Name: "path", Type: cty.String, Doc: "The directory to unpack into: an absolute, clean path. Links that lead there are followed."},
			{
				Name: "source", Type: cty.String, Required: true, File: true, URL: true, TypeText: "file name or https URL",
				Doc: "The archive: a file, relative to the scroll's directory, or an https URL, which needs `sha256`.",
			},
			{Name: "sha256", Type: cty.String, Default: "none; required with a URL", Doc: "The SHA-256 that the archive must have, in hex. A tar that lacks the mark at its end, as one that was cut short does, needs it, too."},
			{Name: "strip", Type: cty.Number, Default: "`0`", Doc: "How many leading directories of each name are left out; what has no more than that is not unpacked."},
			{
				Name: "include", Type: cty.List(cty.String), Default: "everything",
				Doc: "Which entries are unpacked: patterns of names as they are after `strip`. `*` stays inside one directory and `**` does " +
					"not; a directory stands for all that is in it.",
			},
			{Name: "exclude", Type: cty.List(cty.String), Default: "nothing", Doc: "Which of these are not, in the same way."},
			withDefault(ownerAttr, "`root` for a new file"), withDefault(groupAttr, "`root`, or that of a setgid directory, for a new file"),
		},
		NoAdopt: "Which archive files came from cannot be seen on the host. Declare the archive with its source: files that are " +
			"there already, as they are in it, are recorded and left.",
		Identity:  func(a scrolls.Attrs) []string { return []string{str(a, "path"), archiveName(a)} },
		Check:     checkArchive,
		Canonical: canonicalArchive,
	},
}

var hexSum = regexp.MustCompile(`^[0-9a-fA-F]{64}$`)

// archiveName is the archive's file name, which tells it from others in its directory.
func archiveName(a scrolls.Attrs) string {
	name := str(object(a, "source"), "path")
	if text, ok := a["source"].(string); ok {
		name = text
		if u, err := url.Parse(text); err == nil {
			name = u.Path
		}
	}
	if name = path.Base(name); name == "/" || name == "." {
		return "archive"
	}
	return name
}

// archiveSum is the SHA-256 of a glyph's archive.
func archiveSum(a scrolls.Attrs) string {
	if sum, ok := object(a, "source")["sha256"].(string); ok {
		return sum
	}
	return strings.ToLower(str(a, "sha256"))
}

// checkArchive says what is wrong with an archive before it is opened.
func checkArchive(a scrolls.Attrs) []scrolls.Problem {
	var problems []scrolls.Problem
	wrong := func(attr, summary, format string, args ...any) {
		problems = append(problems, scrolls.Problem{Attr: attr, Summary: summary, Detail: fmt.Sprintf(format, args...)})
	}
	if p := str(a, "path"); !protected[p] || p == "/" || p == "/proc" || p == "/sys" || p == "/dev" {
		// Of the other directories that a system stands on, only what is in them is declared.
		problems = append(problems, checkPath("path", p)...)
	}
	sum, given := a["sha256"].(string)
	if given && !hexSum.MatchString(sum) {
		wrong("sha256", "Not a SHA-256", "%q is not 64 digits of hex, as sha256sum prints them.", sum)
	}
	if text, ok := a["source"].(string); ok {
		u, err := url.Parse(text)
		switch {
		case err != nil || u.Scheme != "https" || u.Hostname() == "":
			wrong("source", "Not an https URL", "%s must begin with \"https://\" and name a host: golem downloads nothing that somebody on the way could change.", shownSource(a))
		case !given:
			wrong("source", "Archive without a checksum", "What is downloaded must be known beforehand. Write sha256, as sha256sum prints it.")
		}
	} else if has := archiveSum(a); given && hexSum.MatchString(sum) && has != "" && !strings.EqualFold(has, sum) {
		wrong("sha256", "Archive has another checksum", "The file has %s. Either it is not the one that is meant, or its new checksum has to be written here.", has)
	}
	if wholeNumber(a, "strip", 0) < 0 {
		wrong("strip", "Not a number of directories", "It must be a whole number, 0 or more.")
	}
	for _, attr := range []string{"include", "exclude"} {
		for _, pattern := range words(a, attr) {
			if !doublestar.ValidatePattern(pattern) || pattern == "" || strings.HasPrefix(pattern, "/") || path.Clean(pattern) != strings.TrimSuffix(pattern, "/") {
				wrong(attr, "Not a pattern", "%q is not a pattern of names inside the archive, like \"bin/*\" or \"**/*.conf\".", pattern)
			}
		}
	}
	return problems
}

// shownSource is where an archive comes from, without a password in it.
func shownSource(a scrolls.Attrs) string {
	text, ok := a["source"].(string)
	if !ok {
		return quote(str(object(a, "source"), "path"))
	}
	if u, err := url.Parse(text); err == nil {
		return quote(u.Redacted())
	}
	return quote(text)
}

// canonicalArchive is of the bytes, wherever they come from.
func canonicalArchive(a scrolls.Attrs) scrolls.Attrs {
	c := maps.Clone(a)
	delete(c, "source")
	c["sha256"] = archiveSum(a)
	if wholeNumber(a, "strip", 0) == 0 {
		delete(c, "strip")
	}
	for _, attr := range []string{"include", "exclude"} {
		if len(words(a, attr)) == 0 {
			delete(c, attr)
		}
	}
	return c
}
