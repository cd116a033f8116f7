package reconcilers

import (
	"fmt"

	"golem/reconcilers/entry"
	"golem/scrolls"
)

// checkEntry says what is wrong with a glyph before any file is looked at.
func checkEntry(a scrolls.Attrs) []scrolls.Problem {
	problems := append(checkPath("path", str(a, "path")), checkValidate(a)...)
	wrong := func(attr, summary, detail string) {
		problems = append(problems, scrolls.Problem{Attr: attr, Summary: summary, Detail: detail})
	}
	format := formatOf(a)
	_, known := entry.Formats[format]
	switch {
	case format == "":
		wrong("path", "Format is not known", "The file's name does not say how it is written. Add format = "+formatNames()+".")
	case !known:
		wrong("format", "Format is not known", fmt.Sprintf("There is no format %q. Write %s.", format, formatNames()))
	}
	steps, why := entrySteps(a)
	if why != "" {
		wrong("key", "Key cannot be read", why)
	} else if _, member := a["member"]; len(steps) == 0 && !member {
		wrong("key", "Key has no steps", "It means the whole file. Declare a file instead, or a member of the list that the file is.")
	}
	problems = append(problems, checkWish(a)...)
	if gone := boolOf(a, "absent"); gone != nil && *gone && len(steps) > 0 && steps[len(steps)-1].Place {
		wrong("key", "A place in a list cannot be absent", "The members behind it would move up, and the next run would take away one more.")
	}
	if _, given := a["document"]; given {
		switch n := wholeNumber(a, "document", 0); {
		case n < 0:
			wrong("document", "Document is no whole number", "The documents of a stream are numbered from 0.")
		case n > 0 && format != "yaml":
			wrong("document", "Only YAML has documents", "A file of another format is one document.")
		}
	}
	if len(problems) == 0 {
		if checker, ok := entry.Formats[format].(entry.Checker); ok {
			if attr, detail := checker.Check(entryWish(a)); detail != "" {
				wrong(attr, "The format cannot hold it", detail)
			}
		}
	}
	return problems
}

// checkWish says what is wrong with what is wished of the key.
func checkWish(a scrolls.Attrs) []scrolls.Problem {
	var problems []scrolls.Problem
	wrong := func(attr, summary, detail string) {
		problems = append(problems, scrolls.Problem{Attr: attr, Summary: summary, Detail: detail})
	}
	var given []string
	for _, name := range []string{"value", "member"} {
		if _, ok := a[name]; ok {
			given = append(given, name)
		}
	}
	if gone := boolOf(a, "absent"); gone != nil && *gone {
		given = append(given, "absent")
	}
	switch {
	case len(given) == 0:
		wrong("", "Entry without a value", "Write value = …, member = … for a member of a list, or absent = true.")
	case len(given) > 1:
		wrong(given[1], "Entry says two things", fmt.Sprintf("Both %s and %s are written. Keep one.", given[0], given[1]))
	}
	_, before := a["before"]
	_, after := a["after"]
	_, member := a["member"]
	switch {
	case before && after:
		wrong("after", "Place given twice", "Both before and after say where the member is put. Keep one.")
	case before && !member:
		wrong("before", "Only a member has a place", "before says where a new member of a list is put; this entry has none.")
	case after && !member:
		wrong("after", "Only a member has a place", "after says where a new member of a list is put; this entry has none.")
	}
	return problems
}
