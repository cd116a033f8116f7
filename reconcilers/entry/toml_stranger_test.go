package entry

import (
	"encoding/json"
	"testing"
)

// TestTOMLStrangers takes golem's edits off texts in which others have changed what lies
// right beside them.
func TestTOMLStrangers(t *testing.T) {
	for _, c := range []struct {
		name, text, alien, want string
		w                       Wish
	}{
		{"another member", "a = [1, 2]\n", "a = [1, 2, 3, 4]\n", "a = [1, 2, 4]\n", Wish{Steps: steps("a"), Value: json.Number("3"), Member: true}},
		{"another key of an inline table", "a = { b = 1 }\n", "a = { b = 2, c = 3 }\n", "a = { b = 2 }\n", Wish{Steps: steps("a", "c"), Value: json.Number("3")}},
		{"the value of that key", "a = { b = 1, d = 1 }\n", "a = { b = 9, d = 2 }\n", "a = { b = 1, d = 2 }\n", Wish{Steps: steps("a", "b"), Value: json.Number("3")}},
		{"a key cut from an inline table", "a = { b = 1, d = 1 }\n", "a = { d = 2 }\n", "a = { d = 2, b = 1 }\n", Wish{Steps: steps("a", "b"), Absent: true}},
		{
			"a table of a list before", "[[i]]\nn = 'x'\nk = 1\n", "[[i]]\nn = 'y'\nk = 2\n[[i]]\nn = 'x'\nk = 2\n", "[[i]]\nn = 'y'\nk = 2\n[[i]]\nn = 'x'\nk = 1\n",
			Wish{Steps: mixed("i", 0, "k"), Value: json.Number("2")},
		},
		{"a key set anew", "a = 1\nb = 2\n", "b = 3\na = 4\n", "a = 1\nb = 3\n", Wish{Steps: steps("a"), Absent: true}},
		{"a table set anew", "[t]\na = 1\n[u]\nb = 2\n", "[u]\nb = 3\n[t]\nc = 4\n", "[t]\na = 1\n[u]\nb = 3\n", Wish{Steps: steps("t"), Absent: true}},
		{"a key in golem's table", "a = 1\n", "a = 1\n\n[t]\nk = 1\nl = 2\n", "a = 1\n\n[t]\nl = 2\n", Wish{Steps: steps("t", "k"), Value: json.Number("1")}},
		{"a key before a table that was cut", "[t]\na = 1\n", "b = 2\n", "b = 2\n[t]\na = 1\n", Wish{Steps: steps("t"), Absent: true}},
		{"a key before a list that was cut", "[[i]]\na = 1\n\n[[i]]\na = 2\n", "\nb = 2\n", "\nb = 2\n[[i]]\na = 1\n[[i]]\na = 2\n", Wish{Steps: steps("i"), Absent: true}},
		{
			"dotted keys of a table that was cut", "[f]\na.c = 1\n\n[f.a.t]\ns = 1\n", "\n[f]\nx = 1\n", "\n[f]\na.c = 1\nx = 1\n[f.a.t]\ns = 1\n",
			Wish{Steps: steps("f", "a"), Absent: true},
		},
		{"golem's table renamed", "a = 1\n", "a = 1\n\n[s]\nk = 1\n", "a = 1\n\n[s]\nk = 1\n", Wish{Steps: steps("t", "k"), Value: json.Number("1")}},
		{"no TOML any more", "a = 1\n", "a = 2\nb\n", "a = 2\nb\n", Wish{Steps: steps("a"), Value: json.Number("2")}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, receipt := putLaws(t, tomlFormat{}, []byte(c.text), c.w)
			if got := (tomlFormat{}).Peel([]byte(c.alien), c.w, receipt); receipt == nil || string(got) != c.want {
				t.Fatalf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}
