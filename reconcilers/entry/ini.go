package entry

import (
	"strings"
	"unicode"
)

// ini is `[section]` and `key = value`: systemd's units, git's configuration, php.ini,
// desktop files and their kin, which agree on little more than that. What a text is of is
// told from its sections; what only some of them would read alike is refused.
var ini = &dialect{
	aim:       aimINI,
	parse:     parseINI,
	sameBlock: sameSection,
	sameKey:   func(s *sheet, a, b string) bool { return a == b || s.flavor == gitINI && strings.EqualFold(a, b) },
	spell:     spellINI,
	fits:      func(value any) error { _, err := scalar(value, "true", "false"); return err },
	reads:     readsINI,
	pair:      pairINI,
	ahead:     func(*sheet, int) int { return -1 },
	voids:     func(s *sheet, raw string) bool { return s.flavor == systemdINI && raw == "" },
	head:      func(name string) string { return "[" + name + "]" },
	gap:       gapINI,
}

// A flavor is whose INI a text is.
type flavor int

const (
	plainINI   flavor = iota
	systemdINI        // no comments behind values, a backslash goes on in the next line
	desktopINI        // no comments behind values, no continuation
	gitINI            // escapes, quotes, comments behind values, subsections
	phpINI            // quotes, comments behind values
	tomlText          // no INI at all
)

// systemdSections are sections of units and of systemd's own configuration.
var systemdSections = words(`Unit Service Install Socket Timer Path Mount Automount Swap Slice Scope Manager
	Journal Coredump Resolve Sleep Login Upload Remote OOM Match Link Network NetDev DHCPv4 DHCPv6 Address Route
	Container Volume Pod Kube Quadlet`)

// desktopSections are sections of desktop entries, icon themes and D-Bus services.
var desktopSections = words(`Desktop-Entry Icon-Theme D-BUS-Service`)

// gitSections are sections of git that other programs hardly have.
var gitSections = words(`core user remote branch alias push pull merge diff init color credential http https filter
	include includeIf url safe gc fetch commit tag gpg rebase submodule receive transfer`)

func words(list string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(list) {
		set[strings.ReplaceAll(w, "-", " ")] = true
	}
	return set
}

// flavorOf tells a section's flavour by its name. A git section is one only if what
// stands in it is indented, as git writes it.
func flavorOf(name string, indented bool) flavor {
	first, rest, sub := strings.Cut(name, " ")
	switch {
	case sub && strings.HasPrefix(rest, `"`) && strings.HasSuffix(rest, `"`):
		return gitINI
	case gitSections[name] && indented:
		return gitINI
	case systemdSections[name]:
		return systemdINI
	case desktopSections[name], first == "Desktop" && strings.HasPrefix(rest, "Action "):
		return desktopINI
	case name == "PHP":
		return phpINI
	}
	return plainINI
}

// aimINI implements dialect.aim.
func aimINI(w Wish) (target, error) {
	if len(w.Steps) != 2 {
		hint := ""
		if len(w.Steps) > 2 {
			hint = `, and a subsection is written as between the brackets: ["remote \"origin\"", "url"]`
		}
		return target{}, refuse("a key of this format is a section (\"\" before any) and a name%s; number of steps here: %d", hint, len(w.Steps))
	}
	t := target{block: w.Steps[0].text(), key: w.Steps[1].text()}
	if strings.ContainsAny(t.block, "\r\n\x00") || strings.TrimSpace(t.block) != t.block || headEnd("["+t.block+"]") != len(t.block)+1 {
		return t, refuse("%s cannot stand between brackets as the name of a section", quote(t.block))
	}
	if t.key == "" || strings.ContainsAny(t.key, "=\r\n\x00") || strings.TrimFunc(t.key, unicode.IsSpace) != t.key ||
		strings.HasPrefix(t.key, "[") || strings.HasPrefix(t.key, "#") || strings.HasPrefix(t.key, ";") {
		return t, refuse("%s cannot stand as a name in front of an equals sign", quote(t.key))
	}
	return t, nil
}

// headEnd is where the bracket that closes a section's name stands, quotes aside; -1 for
// none.
func headEnd(line string) int {
	quoted := false
	for i := 1; i < len(line); i++ {
		switch c := line[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case c == ']' && !quoted:
			return i
		}
	}
	return -1
}

// pairINI implements dialect.pair.
func pairINI(s *sheet, near *row, t target, raw string) string {
	indent, between := "", " = "
	switch s.flavor {
	case systemdINI, desktopINI:
		between = "="
	case gitINI:
		indent = "\t"
	}
	if near != nil {
		if t.block != "" || s.blocks[near.block].name == "" {
			indent = string(s.text[near.start:near.keyStart])
		}
		between = s.sign(near, len(t.key))
		if near.val == near.valEnd && strings.HasSuffix(between, "=") && len(between) > 1 {
			between += " " // there the value is missing, and with it the blank
		}
	}
	return strings.TrimRight(indent+t.key+between+raw, " \t")
}

// sign is what stands between key and value of a row like another: where there signs stand
// in a column, in that column.
func (s *sheet) sign(near *row, key int) string {
	between := string(s.text[near.keyEnd:near.val])
	if i := strings.IndexAny(between, "=:"); i > 1 && strings.Trim(between[:i], " ") == "" {
		between = strings.Repeat(" ", max(1, near.keyEnd-near.keyStart+i-key)) + between[i:]
	}
	return between
}

// gapINI implements dialect.gap: as before the last section that is not the first line.
func gapINI(s *sheet) bool {
	for k := len(s.blocks) - 1; k > 0; k-- {
		i := s.blocks[k].head
		for i > 0 && s.rows[i-1].kind == commentRow {
			i--
		}
		if i > 0 {
			return s.rows[i-1].kind == blankRow
		}
	}
	return s.flavor != gitINI
}

// sameSection implements dialect.sameBlock. Git matches a section without case, and its
// subsection with it.
func sameSection(s *sheet, a, b string) bool {
	if a == b || s.flavor != gitINI {
		return a == b
	}
	x, xSub, _ := strings.Cut(a, " ")
	y, ySub, _ := strings.Cut(b, " ")
	return strings.EqualFold(x, y) && xSub == ySub
}
