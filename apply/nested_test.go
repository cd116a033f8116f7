package apply_test

import (
	"testing"

	"golem/scrolls"
)

// TestAnEditWithinAnotherIsNoDrift: a key whose place is in a block of another leaf, is as golem left it, also where a person has changed the file.
func TestAnEditWithinAnotherIsNoDrift(t *testing.T) {
	block := glyph("region", scrolls.Attrs{"path": "/f.ini", "name": "r", "content": "z=1"})
	key := glyph("entry", scrolls.Attrs{"path": "/f.ini", "key": "a.q", "value": "1"})
	for name, first := range map[string][]*scrolls.Leaf{
		"the block was there": {leafOf("one", block)},
		"all of them are put": {leafOf("one")},
		"the key was there":   {leafOf("two", key)},
	} {
		t.Run(name, func(t *testing.T) {
			found := "[a]\nx=1\n"
			h := hostWith(t, map[string]string{"/f.ini": found})
			h.mustApply(t, scrollOf(first...))
			h.write(t, "/f.ini", "human=1\n"+h.read(t, "/f.ini"))
			all := scrollOf(leafOf("one", block), leafOf("two", key))
			h.mustApply(t, all)
			before, revision := h.read(t, "/f.ini"), h.revision(t, "run")
			if report := h.mustApply(t, all); !report.Plan.Empty() {
				t.Errorf("applied again, it finds %s", changes(report))
			}
			if after := h.read(t, "/f.ini"); after != before || h.revision(t, "run") != revision {
				t.Errorf("applied again, it is\n%s\nnot\n%s", after, before)
			}
			h.mustApply(t, scrollOf(leafOf("one")))
			if left := h.read(t, "/f.ini"); left != "human=1\n"+found {
				t.Errorf("undeclared, it is\n%s", left)
			}
		})
	}
}
