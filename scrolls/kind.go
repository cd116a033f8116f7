package scrolls

import "github.com/zclconf/go-cty/cty"

// A Kind is what the language needs to know of a kind of glyph. It is declared by
// the kind itself, as data and pure functions: nothing here looks at a host.
type Kind struct {
	Name    string
	Version int // of the attribute encoding, stored with every glyph
	// Doc is one paragraph of Markdown: what a glyph of this kind declares, what is
	// captured, and what undo does.
	Doc string
	// LabelAttr names the attribute that a block's label gives when the attribute
	// is not written ("path" for file "/etc/motd" {}). Empty: the label is a label.
	LabelAttr string
	// Local says that what LabelAttr names is nothing on the host: inside a module the
	// module's path stands before it.
	Local bool
	// Renames says that the label alone makes the key, or a part of it, so that another
	// label means another thing unless moved_from says which it was.
	Renames bool
	// NoAdopt, where set, says in sentences why nothing of the kind can be adopted, and what
	// to do instead.
	NoAdopt string
	Attrs   []Attr
	// Identity returns the unescaped parts of the key after the kind. It is called
	// on checked attributes only.
	Identity func(a Attrs) []string
	// Shape, where set, spells the key of an identity that MakeKey alone cannot: with
	// steps in a part, or a member in brackets.
	Shape func(a Attrs) Key
	// Check says what is wrong with attributes whose types are already right.
	Check func(a Attrs) []Problem
	// Canonical returns the attributes that the content id is made from, where that
	// is not simply all of them. It must not change its argument.
	Canonical func(a Attrs) Attrs
	// Surface returns the path a glyph is a layer of, and whether it is the base
	// there (at most one a path). Nil for a kind that is not about a path.
	Surface func(a Attrs) (path string, base bool)
}

// KeyOf is the key of a glyph with these attributes.
func (k *Kind) KeyOf(a Attrs) Key {
	if k.Shape != nil {
		return k.Shape(a)
	}
	return MakeKey(k.Name, k.Identity(a)...)
}

// An Attr is one attribute of a kind.
type Attr struct {
	Name     string
	Type     cty.Type
	Required bool
	// Exact refuses a value that would have to be converted to Type first: a mode
	// written as a number means something else than its digits.
	Exact bool
	// File marks a string that names a local file, relative to the scroll's
	// directory: the loader hashes it and puts a FileRef in its place.
	File bool
	// URL lets a File be somewhere else: a string with "://" in it stays as it is.
	URL bool
	// Folder marks an attribute that may be a string: then it names a local directory,
	// and the loader puts its files in its place.
	Folder bool
	// TypeText is the type for the docs, where it has no good name of its own.
	TypeText string
	// Null takes null for a value; elsewhere it means that the attribute is not written.
	Null bool
	// Secret says that the value is never shown, wherever it comes from.
	Secret bool
	// Hint is added to the message when the type is wrong, and Sensitive when the value is
	// part of the key, and must not be shown.
	Hint      string
	Sensitive string
	Default   string // for the docs only, as prose: "0644 for a new file"
	Doc       string // one sentence of Markdown
}

// A Problem is what a kind finds wrong with one attribute (or, with Attr empty, with
// the glyph as a whole).
type Problem struct {
	Attr    string
	Summary string // fixed and nameless: "Path is not absolute"
	Detail  string // sentences: what is wrong, and what to write instead
}
