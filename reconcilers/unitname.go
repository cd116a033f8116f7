package reconcilers

import (
	"slices"
	"strings"

	"golem/scrolls"
)

// unitSuffixes are the types of unit there are.
var unitSuffixes = []string{
	"service", "socket", "timer", "path", "target", "mount", "automount", "swap", "slice", "scope", "device",
}

// unitSuffix is a unit's type by its name; "" where the name has none.
func unitSuffix(name string) string {
	i := strings.LastIndexByte(name, '.')
	if i < 0 || !slices.Contains(unitSuffixes, name[i+1:]) {
		return ""
	}
	return name[i+1:]
}

// unitName is a unit's name in full: without a suffix, a service is meant.
func unitName(name string) string {
	if unitSuffix(name) == "" {
		return name + ".service"
	}
	return name
}

// parts takes a unit's name apart: "getty@tty1.service" is "getty", "tty1", "service";
// templated says that there is an "@".
func unitParts(name string) (prefix, instance, suffix string, templated bool) {
	suffix = unitSuffix(name)
	stem := strings.TrimSuffix(name, "."+suffix)
	prefix, instance, templated = strings.Cut(stem, "@")
	return prefix, instance, suffix, templated
}

// unitTemplate is the template an instance is made from; "" for what is no instance.
func unitTemplate(name string) string {
	prefix, instance, suffix, templated := unitParts(name)
	if !templated || instance == "" {
		return ""
	}
	return prefix + "@." + suffix
}

// maxUnitName is how long a unit's name may be, as in systemd.
const maxUnitName = 255

// checkUnitName says what is wrong with a unit's name, before any host is looked at.
func checkUnitName(attr, name string) []scrolls.Problem {
	one := func(summary, detail string) []scrolls.Problem {
		return []scrolls.Problem{{Attr: attr, Summary: summary, Detail: detail}}
	}
	if name == "" {
		return one("Unit name is empty", "Write the unit's name, like \"nginx.service\".")
	}
	if strings.Contains(name, "/") {
		return one("Not a unit name", "\""+name+"\" is a path. Write the unit's name, like \"nginx.service\" or \"srv-data.mount\".")
	}
	full := unitName(name)
	for _, c := range []byte(full) {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && !strings.ContainsRune(`:-_.\@`, rune(c)) {
			return one("Not a unit name", "\""+name+"\" holds a character that no unit's name has. Letters, digits and : - _ . \\ @ may stand in one.")
		}
	}
	prefix, instance, suffix, templated := unitParts(full)
	switch {
	case len(full) > maxUnitName:
		return one("Unit name is too long", "A unit's name has at most 255 characters.")
	case prefix == "":
		return one("Not a unit name", "\""+name+"\" is only the end of a name. Write it whole, like \"nginx.service\".")
	case templated && instance == "":
		return one("Template without an instance",
			"\""+full+"\" is a template, and only an instance of it can run. Name one, like \""+prefix+"@NAME."+suffix+"\".")
	}
	return nil
}
