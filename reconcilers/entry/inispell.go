package entry

import (
	"strings"
)

// spellINI implements dialect.spell.
func spellINI(s *sheet, value any, old *row) (string, error) {
	raw, err := scalar(value, "true", "false")
	if err != nil {
		return "", err
	}
	text, isText := value.(string)
	if s.flavor == gitINI && isText {
		return gitQuote(text), nil
	}
	if _, err := onOneLine(raw); err != nil {
		return "", err
	}
	wasQuoted := old != nil && s.flavor != systemdINI && s.flavor != desktopINI && inINIQuotes(s.raw(*old))
	if isText && !inINIQuotes(raw) && !strings.ContainsAny(raw, `"\`) &&
		(wasQuoted || s.flavor == phpINI && strings.ContainsAny(raw, "|&!(){}^~;#' \t=")) {
		return `"` + raw + `"`, nil
	}
	if strings.TrimSpace(raw) != raw {
		return "", refuse("a value of this format cannot begin or end with a blank")
	}
	if s.flavor == desktopINI {
		return raw, nil
	}
	if runsOn([]byte(raw)) {
		return "", refuse("a value of this format cannot end in a backslash: it would go on in the next line")
	}
	if s.flavor == systemdINI {
		return raw, nil
	}
	end, closed := commentAt([]byte(" "+raw), s.flavor)
	if end != len(raw)+1 {
		return "", refuse("a part of the value would be read as a comment; write it in double quotes")
	}
	if !closed {
		return "", refuse("a double quote in the value is not closed")
	}
	return raw, nil
}

// inINIQuotes says whether a spelling is wholly in double quotes.
func inINIQuotes(raw string) bool {
	return len(raw) >= 2 && raw[0] == '"' && strings.IndexByte(raw[1:], '"') == len(raw)-2
}

// readsINI implements dialect.reads.
func readsINI(s *sheet, raw string, value any) bool {
	want, err := scalar(value, "true", "false")
	if err != nil {
		return false
	}
	switch s.flavor {
	case gitINI:
		got, ok := gitUnquote(raw)
		return ok && got == want
	case systemdINI:
		return raw == want || joinLines(raw) == want
	case desktopINI:
		return raw == want
	}
	return raw == want || inINIQuotes(raw) && raw[1:len(raw)-1] == want && !strings.Contains(want, `\`)
}

// joinLines is a value of systemd's that goes on over several lines: each backslash and
// line ending counts as a blank, and comments between do not count.
func joinLines(raw string) string {
	if !strings.Contains(raw, "\n") {
		return raw
	}
	var out strings.Builder
	for i, line := range strings.Split(raw, "\n") {
		line = strings.TrimSuffix(line, "\r")
		if start := strings.TrimLeft(line, " \t"); i > 0 && start != "" && (start[0] == '#' || start[0] == ';') {
			continue
		}
		if runsOn([]byte(line)) {
			line = line[:len(line)-1] + " "
		}
		out.WriteString(line)
	}
	return out.String()
}

// gitQuote spells a text for git.
func gitQuote(text string) string {
	out := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`).Replace(text)
	if text != strings.TrimSpace(text) || strings.ContainsAny(text, ";#\r") || strings.Contains(text, "  ") {
		return `"` + out + `"`
	}
	return out
}

// gitUnquote reads a value as git does.
func gitUnquote(raw string) (string, bool) {
	var out strings.Builder
	quoted := false
	for i := 0; i < len(raw); i++ {
		c := raw[i]
		switch {
		case c == '"':
			quoted = !quoted
		case c != '\\':
			out.WriteByte(c)
		case i+1 == len(raw):
			return "", false
		default:
			i++
			switch raw[i] {
			case 'n':
				out.WriteByte('\n')
			case 't':
				out.WriteByte('\t')
			case 'b':
				out.WriteByte('\b')
			case '\\', '"':
				out.WriteByte(raw[i])
			case '\n':
			case '\r':
				if i+1 < len(raw) && raw[i+1] == '\n' {
					i++
					continue
				}
				return "", false
			default:
				return "", false
			}
		}
	}
	return out.String(), !quoted
}
