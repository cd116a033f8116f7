// Package scrolls turns HCL into a scroll: a tree of plain values that says how a
// host should be. It knows no host and no kind by name; what kinds there are, and
// what the host is called, is handed to it.
package scrolls

import (
	"github.com/hashicorp/hcl/v2"
)

// A Key says which resource a glyph is about: kind:identity, percent-encoded so
// that no two things share a key (design: "Keys name what is on the host").
type Key string

// A ContentID says which version of a resource is wanted: a hash over the canonical
// encoding of the glyph alone, in lower-case hex.
type ContentID string

// A Place is where something is written: file, line and column.
type Place = hcl.Range

// Attrs are a glyph's attributes as plain values: nil, bool, string, json.Number,
// []any and map[string]any, and nothing else. Only what was written is in it, and the
// identity, whether it came from the label or from an attribute.
type Attrs map[string]any

// A Glyph is one thing the scroll wants to be true of the host.
type Glyph struct {
	Kind  string
	Key   Key
	Attrs Attrs
	// Secret names the attributes whose values must not be shown, sorted.
	Secret []string
	// Version is the version of the kind's attribute encoding (Kind.Version).
	Version int

	// Protect makes a plan fail that would remove it, or destroy it on the way to another
	// version; it stands in the journal until a scroll declares the glyph without it.
	Protect bool
	// OnUndeclare is what becomes of it when it is undeclared: "" to give back what was
	// there, "leave" to leave it as it is.
	OnUndeclare string
	// Adopt says that the thing is there, made by somebody else, and that golem takes it over.
	Adopt bool

	// What follows is not stored. Nothing from Protect on is part of the content id.

	// MovedFrom is the key whose record this glyph takes over; "" for none.
	MovedFrom Key
	Label     string
	Each      string // the key of for_each that it is made for
	Leaf      string
	// Files holds, for each attribute that names a local file (Attr.File), the
	// absolute path its bytes are read from. A glyph from the journal has none:
	// its bytes are a blob there, by the hash in Attrs.
	Files map[string]string
	At    Place            // the block's header
	Where map[string]Place // each written attribute
	// AdoptAt is where an adopt block names the key.
	AdoptAt Place
}

// A FileRef is what Attrs holds for an attribute that names a local file, as a
// map[string]any with the keys "path" (as written), "sha256" (hex) and "size".
type FileRef struct {
	Path   string
	SHA256 string
	Size   int64
}

// A Leaf is a scroll that holds glyphs: the failure boundary.
type Leaf struct {
	// Path is the leaf's name: its path below the root, joined with "/"; the only
	// leaf of a flat scroll has the lineage's name.
	Path   string
	Policy Policy
	Glyphs []*Glyph // in source order
	// Checks must hold when the leaf's glyphs and triggers are done; each is a glyph of a
	// kind of check.
	Checks []*Glyph
	At     Place
}

// A Scroll is what was loaded: every leaf in source order, each with its policy.
type Scroll struct {
	Name string // the lineage
	// Defaulted is true when no name was written and none was given.
	Defaulted bool
	Dir       string // absolute; the directory it was read from
	Source    string // the path as the user gave it, made absolute
	// Digest is a hash over every source file, every file read by a function and
	// every variable's value.
	Digest string
	Leaves []*Leaf
	// Written says that a glyph or a module is written in it, so that it is not empty in so
	// many words even where for_each and when leave nothing.
	Written bool
	// Policies holds the effective policy of each scroll of the tree by its path
	// ("" for the root), so that a leaf that is gone finds its nearest ancestor's.
	Policies map[string]Policy
	// Files are the sources, by name, for the snippets of later diagnostics.
	Files map[string]*hcl.File
}

// Glyphs returns every glyph of the scroll in source order.
func (s *Scroll) Glyphs() []*Glyph {
	var all []*Glyph
	for _, leaf := range s.Leaves {
		all = append(all, leaf.Glyphs...)
	}
	return all
}
