package scrolls

import (
	"encoding/json"
	"testing"
)

// TestHushTakesSecretsOutOfWhatIsTold: wherever a long one stands, and a short one as a word.
func TestHushTakesSecretsOutOfWhatIsTold(t *testing.T) {
	g := &Glyph{Secret: []string{"home", "uid", "groups"}, Attrs: Attrs{
		"home": "/srv/long-secret", "uid": json.Number("5432"), "groups": []any{"audio", map[string]any{"a": "one line\ntwo lines"}}, "shell": "/bin/sh",
	}}
	for text, want := range map[string]string{
		"a new user, uid 5432, home /srv/long-secret (made), joins audio": "a new user, uid (sensitive value), home (sensitive value) (made), joins (sensitive value)",
		"/srv/long-secret5, 15432, audios, _audio":                        "(sensitive value)5, 15432, audios, _audio",
		"it says two lines, shell /bin/sh":                                "it says (sensitive value), shell /bin/sh",
		"5432":                                                            "(sensitive value)",
		"":                                                                "",
	} {
		if got := Hush(text, g.SecretTexts()); got != want {
			t.Errorf("%q is told as %q", text, got)
		}
	}
}

func TestAGlyphHushesWhatIsSaidOfIt(t *testing.T) {
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
		if is := g.Hush(text); is != want {
			t.Errorf("%q is %q, want %q", text, is, want)
		}
	}
	if is := (&Glyph{Attrs: g.Attrs}).Hush("/srv/ann"); is != "/srv/ann" {
		t.Errorf("what is not sensitive is %q", is)
	}
}
