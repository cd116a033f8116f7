package scrolls

import (
	"strings"
	"testing"
)

// TestAdoptBlockMarksTheGlyphOfItsKey: wherever the block stands, in a module, in a scroll that
// repeats, before the glyph or behind it; and only where both are declared.
func TestAdoptBlockMarksTheGlyphOfItsKey(t *testing.T) {
	s := mustDir(t, map[string]string{
		"main.hcl": `
locals { paths = { a = "/etc/a", b = "/etc/b" } }
adopt {
  for_each = local.paths
  when     = each.key != "b"
  key      = "file:${each.value}"
}
scroll "files" {
  file "each" {
    for_each = local.paths
    path     = each.value
    content  = each.key
  }
}
scroll "sites" {
  for_each = { x = 1 }
  file "site" {
    path    = "/etc/${each.key}"
    content = ""
  }
  adopt { key = "file:/etc/${each.key}" }
}
scroll "db" { source = "./db" }
`,
		"db/db.hcl": `
directory "/srv/db" {}
adopt { key = "directory:/srv/db" }
`,
	})
	var adopted []string
	for _, g := range s.Glyphs() {
		if g.Adopt {
			adopted = append(adopted, string(g.Key)+" "+g.Leaf)
			if g.AdoptAt.Filename == "" {
				t.Errorf("%s: the block has no place", g.Key)
			}
		}
	}
	if got, want := strings.Join(adopted, ", "), `file:/etc/a files, file:/etc/x sites["x"], directory:/srv/db db`; got != want {
		t.Errorf("adopted: %s", got)
	}
}

// TestAdoptIsStoredAndNoPartOfTheContentID: a rollback may adopt again, and the block can go.
func TestAdoptIsStoredAndNoPartOfTheContentID(t *testing.T) {
	plain := must(t, `file "/a" { content = "x" }`).Glyphs()[0]
	adopted := must(t, `
file "/a" { content = "x" }
adopt { key = "file:/a" }`).Glyphs()[0]
	if kind := testKinds()[0]; CID(kind, plain) != CID(kind, adopted) {
		t.Error("the content id says that it is adopted")
	}
	data, err := adopted.MarshalStored()
	if err != nil {
		t.Fatal(err)
	}
	if back, err := UnmarshalStored(data); err != nil || !back.Adopt {
		t.Errorf("%s comes back as %+v (%v)", data, back, err)
	}
}
