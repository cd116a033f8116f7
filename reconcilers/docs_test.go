package reconcilers

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"golem/scrolls"
)

var updateDocs = flag.Bool("update-docs", false, "write docs/kinds anew from what the kinds declare")

const kindDocs = "../docs/kinds"

func TestEveryKindsPageSaysWhatTheKindDeclares(t *testing.T) {
	for _, k := range All {
		file := filepath.Join(kindDocs, k.Name+".md")
		want := kindPage(k)
		if *updateDocs {
			if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		have, err := os.ReadFile(file)
		if err != nil {
			t.Error(err)
			continue
		}
		if diff := cmp.Diff(want, string(have)); diff != "" {
			t.Errorf("%s is not what the kind declares; go test ./reconcilers -run Page -update-docs writes it anew\n%s", file, diff)
		}
	}
}

func TestEveryKindsPageIsOfAKindThereIs(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(kindDocs, "*.md"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no pages in %s (%v)", kindDocs, err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".md")
		if _, ok := KindOf(name); !ok {
			t.Errorf("%s: there is no kind %q", file, name)
		}
	}
}

func TestEveryKindAndAttributeIsDescribed(t *testing.T) {
	for _, k := range All {
		if !strings.HasSuffix(k.Doc, ".") {
			t.Errorf("%s: its Doc is no sentence: %q", k.Name, k.Doc)
		}
		for _, a := range k.Attrs {
			if !strings.HasSuffix(a.Doc, ".") {
				t.Errorf("%s.%s: its Doc is no sentence: %q", k.Name, a.Name, a.Doc)
			}
			if a.Required && a.Default != "" {
				t.Errorf("%s.%s: it is required and has a default", k.Name, a.Name)
			}
		}
	}
}

// kindPage is a kind's page in docs/kinds: what the kind declares, and what testdata/pages adds to that.
func kindPage(k Kind) string {
	var b strings.Builder
	fmt.Fprintf(&b, "<!-- Made from what the kind declares: go test ./reconcilers -run Page -update-docs -->\n\n# %s\n\n", k.Name)
	b.WriteString(fold(k.Doc, 88) + "\n\n")
	fmt.Fprintf(&b, "Its key is `%s`.", keyShape(k))
	if k.LabelAttr != "" {
		fmt.Fprintf(&b, " The block's label is the `%s`, unless that is written.", k.LabelAttr)
	} else {
		b.WriteString(" The block's label is only a label.")
	}
	switch {
	case k.base != nil:
		b.WriteString("\nIt is a base: the whole object at its path, of which a path has at most one.\n")
	case k.edit != nil:
		b.WriteString("\nIt is an edit: a layer on a file, beside the edits of other leaves and lineages, and on\nthe declared `file` of that path where there is one.\n")
	default:
		b.WriteString("\n")
	}
	b.WriteString("\n| argument | type | default | |\n|---|---|---|---|\n")
	for _, a := range k.Attrs {
		def := a.Default
		switch {
		case a.Required:
			def = "required"
		case a.Name == k.LabelAttr:
			def = "the label"
		}
		typ := a.Type.FriendlyName()
		if a.File {
			typ = "file name"
		}
		if a.TypeText != "" {
			typ = a.TypeText
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", a.Name, typ, def, strings.ReplaceAll(a.Doc, "|", `\|`))
	}
	more, err := os.ReadFile(filepath.Join("testdata", "pages", k.Name+".md"))
	switch {
	case err == nil:
		b.WriteString("\n" + string(more))
	case !errors.Is(err, os.ErrNotExist):
		panic(err)
	}
	return b.String()
}

// keyShape is the kind's key with the arguments that are in it, in capitals.
func keyShape(k Kind) string {
	if k.shape != "" {
		return k.shape
	}
	attrs := scrolls.Attrs{}
	for _, a := range k.Attrs {
		attrs[a.Name] = strings.ToUpper(a.Name)
	}
	return string(k.KeyOf(attrs))
}

// fold breaks a paragraph into lines of at most width characters.
func fold(text string, width int) string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len(line)+1+len(word) > width {
			lines = append(lines, line)
			line = ""
		}
		line = strings.TrimSpace(line + " " + word)
	}
	return strings.Join(slices.Concat(lines, []string{line}), "\n")
}
