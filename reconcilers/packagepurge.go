package reconcilers

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"strings"
)

// A purging says whether a package's configuration goes with it, and if not why.
type purging struct {
	yes bool
	why string
}

// purges decides whether a package that was not there is purged. Its script may delete
// what was made since (databases do), so one that does more than debhelper's generated
// lines is not run unless the glyph says so.
func (w *World) purges(e *dpkgEntry, mode string) purging {
	switch mode {
	case purgeTrue:
		return purging{yes: true}
	case purgeFalse:
		return purging{why: "purge = false"}
	}
	script, err := w.Host.script(e, "postrm")
	switch {
	case err != nil:
		return purging{why: "its removal script cannot be read: " + err.Error()}
	case !generated(script):
		return purging{why: "its removal script does more than what debhelper generates, and might delete data; purge = true runs it"}
	}
	return purging{yes: true}
}

// leavesTrace says whether removing a package leaves something that only a purge takes.
func (w *World) leavesTrace(e *dpkgEntry) bool {
	if e.Status == dpkgConfigFiles || len(e.conffiles) > 0 {
		return true
	}
	script, err := w.Host.script(e, "postrm")
	return err != nil || script != ""
}

// script reads a package's maintainer script; "" where it has none.
func (h *Host) script(e *dpkgEntry, name string) (string, error) {
	text, err := h.info(e, name)
	return string(text), err
}

// maxInfo bounds what is read of dpkg's files about a package.
const maxInfo = 16 << 20

// info reads one of dpkg's files about a package; nil where there is none.
func (h *Host) info(e *dpkgEntry, name string) ([]byte, error) {
	for _, base := range []string{e.name + ":" + e.arch, e.name} {
		f, err := h.openAt("/var/lib/dpkg/info/" + base + "." + name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		data, err := io.ReadAll(io.LimitReader(f, maxInfo))
		return data, wrap(errors.Join(err, f.Close()), "read", fmt.Sprintf("/var/lib/dpkg/info/%s.%s", base, name))
	}
	return nil, nil
}

const (
	generatedStart = "# Automatically added by dh_"
	generatedEnd   = "# End automatically added section"
)

// skeleton are the lines that a script may have outside of generated sections and still
// do nothing: the frame that every removal script begins as.
var skeleton = regexp.MustCompile(`^(set -[eu]+|:|true|exit( 0)?|case "?\$\{?1\}?"? in|esac|;;|[a-z|* -]+\)|[a-z|* -]+\)\s*(:|true|exit 0)?\s*;;|echo "?[^$` + "`" + `"]*(\$1|\\"\$1\\"|` + "`" + `\$1'|'\$1')?[^$` + "`" + `"]*"? *(>&2|1>&2)|exit 1)$`)

// generated says whether a removal script holds nothing but what debhelper generated,
// and a frame around it. No script is such a script.
func generated(script string) bool {
	inside := false
	for _, line := range strings.Split(script, "\n") {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, generatedStart):
			inside = true
		case strings.HasPrefix(line, generatedEnd):
			inside = false
		case inside, line == "", strings.HasPrefix(line, "#"), skeleton.MatchString(line):
		default:
			return false
		}
	}
	return !inside
}
