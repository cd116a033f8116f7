package reconcilers

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/zclconf/go-cty/cty"

	"golem/scrolls"
)

// Modes of what golem makes where the scroll does not say.
const (
	defaultFileMode = 0o644
	defaultDirMode  = 0o755
)

var (
	pathAttr = scrolls.Attr{Name: "path", Type: cty.String, Doc: "Where it is: an absolute, clean path. The label by default."}
	modeAttr = scrolls.Attr{
		Name: "mode", Type: cty.String, Exact: true,
		Hint: `Write it in quotes, as octal digits: "0644".`,
		Doc:  "Permissions as octal digits, setuid, setgid and sticky included.",
	}
	ownerAttr = scrolls.Attr{Name: "owner", Type: cty.String, Doc: "A user, by name or number."}
	groupAttr = scrolls.Attr{Name: "group", Type: cty.String, Doc: "A group, by name or number."}
)

// withDefault is an attribute with the words that say what holds without it.
func withDefault(a scrolls.Attr, text string) scrolls.Attr {
	a.Default = text
	return a
}

var fileKind = Kind{
	Sort: PathSort,
	Kind: scrolls.Kind{
		Name: "file", Version: 1, LabelAttr: "path",
		Doc: "A regular file with these bytes. What was there is captured whole: bytes, type, mode, owner, group, " +
			"extended attributes, ACLs, flags, modification time, or a link's text. Undeclared, it is put back, or the " +
			"file is deleted where nothing was; parents that golem made go when they are empty. A link at the path is " +
			"replaced, unless `follow` is set.",
		Attrs: []scrolls.Attr{
			pathAttr,
			{Name: "content", Type: cty.String, Doc: "The bytes, as text."},
			{Name: "content_base64", Type: cty.String, Doc: "The bytes, in base64: for what is not UTF-8."},
			{Name: "source", Type: cty.String, File: true, Doc: "A local file with the bytes, relative to the scroll's directory."},
			withDefault(modeAttr, "what is there; `0644` for a new file"),
			withDefault(ownerAttr, "what is there; golem's own user for a new file"),
			withDefault(groupAttr, "what is there; golem's own group for a new file"),
			{Name: "follow", Type: cty.Bool, Default: "`false`", Doc: "Write to the file that a link at the path leads to."},
			{Name: "sensitive", Type: cty.Bool, Default: "`false`", Doc: "Show neither content nor size nor hash, anywhere."},
			validateAttr,
		},
		Identity: func(a scrolls.Attrs) []string { return []string{str(a, "path")} },
		Check:    checkFile, Canonical: canonicalFile,
		Surface: func(a scrolls.Attrs) (string, bool) { return str(a, "path"), true },
	},
	base:   &base{typ: File, make: makeFileNode},
	hidden: contentAttrs,
}

// contentAttrs are the attributes that may say what a file holds.
var contentAttrs = []string{"content", "content_base64", "source"}

// checkFile says what is wrong with a file before any host is looked at.
func checkFile(a scrolls.Attrs) []scrolls.Problem {
	problems := append(checkPath("path", str(a, "path")), checkMode(a)...)
	problems = append(problems, checkValidate(a)...)
	var given []string
	for _, name := range contentAttrs {
		if _, ok := a[name]; ok {
			given = append(given, name)
		}
	}
	switch {
	case len(given) == 0:
		problems = append(problems, scrolls.Problem{
			Summary: "File without content",
			Detail:  `Write content = "…" (an empty string for an empty file), source = "FILE", or content_base64 = "…".`,
		})
	case len(given) > 1:
		problems = append(problems, scrolls.Problem{
			Attr: given[1], Summary: "Content given twice",
			Detail: fmt.Sprintf("Both %s and %s say what is in the file. Keep one.", given[0], given[1]),
		})
	}
	if text, ok := a["content_base64"].(string); ok {
		if _, err := base64.StdEncoding.DecodeString(text); err != nil {
			problems = append(problems, scrolls.Problem{Attr: "content_base64", Summary: "Content is not base64", Detail: err.Error() + "."})
		}
	}
	return problems
}

// checkMode says what is wrong with a mode's digits.
func checkMode(a scrolls.Attrs) []scrolls.Problem {
	text, ok := a["mode"].(string)
	if !ok {
		return nil
	}
	if mode, err := strconv.ParseUint(text, 8, 16); err != nil || mode > 0o7777 || len(text) < 3 || len(text) > 4 {
		return []scrolls.Problem{{
			Attr: "mode", Summary: "Mode is not octal",
			Detail: fmt.Sprintf("%q is not a mode. Write three or four octal digits in quotes, like \"0644\" or \"4755\".", text),
		}}
	}
	return nil
}

// canonicalFile puts the bytes' hash in place of the bytes, however they were given:
// the same bytes from content or source are the same version of the file.
func canonicalFile(a scrolls.Attrs) scrolls.Attrs {
	c := scrolls.Attrs{}
	for name, value := range a {
		switch name {
		case "content", "content_base64", "source":
		case "sensitive", "validate":
			// How it is shown and what tests it are no part of what it is.
		default:
			c[name] = value
		}
	}
	if mode, ok := modeOf(a); ok {
		c["mode"] = fmt.Sprintf("%04o", mode)
	}
	c["sha256"] = wantedFile(&scrolls.Glyph{Attrs: a}).Hash
	return c
}

func modeOf(a scrolls.Attrs) (int, bool) {
	text, ok := a["mode"].(string)
	if !ok {
		return 0, false
	}
	mode, err := strconv.ParseUint(text, 8, 16)
	return int(mode), err == nil
}

// wantedFile is the node of the declared bytes alone.
func wantedFile(g *scrolls.Glyph) Node {
	if text, ok := g.Attrs["content"].(string); ok {
		return fileNode([]byte(text))
	}
	if text, ok := g.Attrs["content_base64"].(string); ok {
		if data, err := base64.StdEncoding.DecodeString(text); err == nil { // checked when loaded
			return fileNode(data)
		}
	}
	ref, _ := g.Attrs["source"].(map[string]any)
	n := fileNode(nil)
	n.data = nil
	n.Hash, _ = ref["sha256"].(string)
	switch size := ref["size"].(type) {
	case json.Number:
		n.Size, _ = size.Int64()
	case int64:
		n.Size = size
	}
	n.local = g.Files["source"]
	if n.local == "" {
		n.Blob = n.Hash // a glyph from the journal: its bytes are there
	}
	if n.Size == 0 {
		n.data = []byte{}
	}
	return n
}

func makeFileNode(w *World, g, was *scrolls.Glyph, beneath, now Node) (Node, error) {
	return dress(w, wantedFile(g), g, was, beneath, now, defaultFileMode)
}

// dress gives a wanted node its metadata. What the scroll sets is set. What it leaves
// open stays as it is on the host, unless golem had set it for the glyph before: then
// it goes back to what lies beneath.
func dress(w *World, n Node, g, was *scrolls.Glyph, beneath, now Node, mode int) (Node, error) {
	unset := func(attr string) bool { // golem set it and no longer does
		if was == nil {
			return false
		}
		_, before := was.Attrs[attr]
		return before
	}
	pick := func(attr string, of func(Node) int, otherwise int) int {
		switch {
		case now.Type == n.Type && !unset(attr):
			return of(now)
		case beneath.Type == n.Type:
			return of(beneath)
		}
		return otherwise
	}
	n.Mode = pick("mode", func(n Node) int { return n.Mode }, mode)
	n.UID = pick("owner", func(n Node) int { return n.UID }, w.Host.UID)
	n.GID = pick("group", func(n Node) int { return n.GID }, Any)
	n.Flags = pick("", func(n Node) int { return n.Flags }, Any)
	switch n.Type {
	case now.Type:
		n.Xattrs = now.Xattrs
	case beneath.Type:
		n.Xattrs = beneath.Xattrs
	}
	if set, ok := modeOf(g.Attrs); ok {
		n.Mode = set
	}
	if err := w.setOwner(&n, g); err != nil {
		return Node{}, err
	}
	if n.Mode != Any && n.Xattrs != nil {
		n.Xattrs = withMode(n.Xattrs, n.Mode)
	}
	return n, nil
}

// setOwner resolves the declared owner and group.
func (w *World) setOwner(n *Node, g *scrolls.Glyph) error {
	if name, ok := g.Attrs["owner"].(string); ok {
		uid, err := w.userFor(g, "owner", name)
		if err != nil {
			return err
		}
		n.UID = uid
	}
	if name, ok := g.Attrs["group"].(string); ok {
		gid, err := w.groupFor(g, "group", name)
		if err != nil {
			return err
		}
		n.GID = gid
	}
	return nil
}

// An AttrError is what is wrong with one attribute on this host.
type AttrError struct {
	// Glyph, where set, is the one of several that it is about.
	Glyph *scrolls.Glyph
	// Other, where set, is a glyph that it clashes with.
	Other   *scrolls.Glyph
	Attr    string
	Summary string
	Err     error
}

func (e *AttrError) Error() string { return e.Err.Error() }
func (e *AttrError) Unwrap() error { return e.Err }

// hashText is the SHA-256 of a text, in hex.
func hashText(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}
