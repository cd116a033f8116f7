package scrolls

import (
	"encoding/json"
	"testing"
)

func TestDiscreetTakesOutWholeWordsOfSensitiveValues(t *testing.T) {
	g := &Glyph{
		Secret: []string{"home", "uid", "list", "note"},
		Attrs: Attrs{
			"home": "/srv/ann", "uid": json.Number("1234"), "list": []any{map[string]any{"source": "/srv"}}, "note": "a \"b\"", "shell": "/bin/sh",
		},
	}
	for text, want := range map[string]string{
		"home /srv/ann (made)":             "home (sensitive value) (made)",
		"uid 1234, and 12345":              "uid (sensitive value), and 12345",
		"/srv/ann is in /srv, not /srvice": "(sensitive value) is in (sensitive value), not /srvice",
		`the note "a \"b\""`:               `the note "(sensitive value)"`,
		"shell /bin/sh":                    "shell /bin/sh",
		"":                                 "",
	} {
		if is := g.Discreet(text); is != want {
			t.Errorf("%q is %q, want %q", text, is, want)
		}
	}
	if is := (&Glyph{Attrs: g.Attrs}).Discreet("/srv/ann"); is != "/srv/ann" {
		t.Errorf("what is not sensitive is %q", is)
	}
}
