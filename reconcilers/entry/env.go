package entry

import (
	"strings"
	"unicode/utf8"
)

// env is KEY=VALUE as a shell reads it, with `export` or without: the last of several
// counts. Values are spelled so that a POSIX shell and systemd's EnvironmentFile read the
// same.
var env = &dialect{
	aim:       aimEnv,
	parse:     parseEnv,
	sameBlock: func(_ *sheet, a, b string) bool { return a == b },
	sameKey:   func(_ *sheet, a, b string) bool { return a == b },
	spell:     spellEnv,
	fits:      func(value any) error { _, err := spellEnv(nil, value, nil); return err },
	reads:     readsEnv,
	pair:      pairEnv,
	ahead:     func(*sheet, int) int { return -1 },
	gap:       func(*sheet) bool { return false },
	lone:      "a variable holds one text and has no members",
}

// aimEnv implements dialect.aim.
func aimEnv(w Wish) (target, error) {
	if len(w.Steps) != 1 {
		return target{}, refuse("a key of this format is one variable's name, not %d steps", len(w.Steps))
	}
	t := target{key: w.Steps[0].text()}
	if nameEnd([]byte(t.key), 0) != len(t.key) || t.key == "" {
		return t, refuse("%s is no variable's name: letters, digits and underscores, and no digit first", quote(t.key))
	}
	return t, nil
}

// nameEnd is where a variable's name that begins at an offset ends.
func nameEnd(text []byte, from int) int {
	i := from
	for i < len(text) && (text[i] == '_' || 'a' <= text[i]|0x20 && text[i]|0x20 <= 'z' || i > from && '0' <= text[i] && text[i] <= '9') {
		i++
	}
	return i
}

// spellEnv implements dialect.spell. The quotes of the value that is replaced stay, if the
// new one can stand in them.
func spellEnv(s *sheet, value any, old *row) (string, error) {
	text, err := scalar(value, "true", "false")
	if err != nil {
		return "", err
	}
	if !utf8.ValidString(text) {
		return "", refuse("a variable's value has to be UTF-8 text: systemd would not read it")
	}
	for _, c := range text {
		if c < ' ' && c != '\n' && c != '\t' || c == 0x7f {
			return "", refuse("a variable's value cannot hold the control character %q: systemd would not read it", c)
		}
	}
	var was byte
	if old != nil && old.valEnd > old.val {
		was = s.text[old.val]
	}
	plain := isPlain(text)
	switch {
	case was == '\'' && !strings.Contains(text, "'"), !plain && was != '"' && strings.ContainsAny(text, "$`\"\\") && !strings.Contains(text, "'"):
		return "'" + text + "'", nil
	case plain && was != '"':
		return text, nil
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "`", "\\`", `$`, `\$`).Replace(text) + `"`, nil
}

// isPlain says that a text needs no quotes in any reader.
func isPlain(text string) bool {
	for _, c := range text {
		letter := 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9'
		if !letter && !strings.ContainsRune("_./:@%+,-=", c) {
			return false
		}
	}
	return true
}

// readsEnv implements dialect.reads.
func readsEnv(_ *sheet, raw string, value any) bool {
	want, err := scalar(value, "true", "false")
	if err != nil {
		return false
	}
	got, ok := readEnv(raw)
	return ok && got == want
}

// readEnv reads a value that a shell and systemd read alike; false for any other.
func readEnv(raw string) (string, bool) {
	if isPlain(raw) {
		return raw, true
	}
	if len(raw) < 2 || raw[0] != raw[len(raw)-1] {
		return "", false
	}
	in := raw[1 : len(raw)-1]
	switch raw[0] {
	case '\'':
		return in, !strings.Contains(in, "'")
	case '"':
		return readDouble(in)
	}
	return "", false
}

// readDouble reads what stands in double quotes.
func readDouble(in string) (string, bool) {
	var out strings.Builder
	for i := 0; i < len(in); i++ {
		switch in[i] {
		case '"', '$', '`':
			return "", false
		case '\\':
			if i++; i == len(in) || strings.IndexByte("\\\"$`", in[i]) < 0 {
				return "", false
			}
		}
		out.WriteByte(in[i])
	}
	return out.String(), true
}

// pairEnv implements dialect.pair: exported where all others are.
func pairEnv(s *sheet, near *row, t target, raw string) string {
	export := near != nil
	for _, r := range s.rows {
		if r.kind == pairRow && !strings.HasPrefix(string(s.text[r.start:r.keyStart]), "export") {
			export = false
		}
	}
	if export {
		return "export " + t.key + "=" + raw
	}
	return t.key + "=" + raw
}
