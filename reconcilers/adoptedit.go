package reconcilers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"golem/reconcilers/entry"
	"golem/scrolls"
)

// editedFile reads the file that an edit is in, and its path, a link followed.
func (w *World) editedFile(kind, id, p string) ([]byte, error) {
	if problems := checkPath("path", p); len(problems) > 0 {
		return nil, &AdoptError{kind, id, problems[0].Detail}
	}
	at, err := w.resolve(p, true)
	if err != nil {
		return nil, err
	}
	n, err := w.Host.observe(w.d, at.real, maxEdit)
	switch {
	case err != nil:
		return nil, err
	case n.Type == Absent:
		return nil, &AdoptError{kind, id, "there is no file " + quote(p)}
	case n.Type != File:
		return nil, &AdoptError{kind, id, quote(p) + " is " + n.Type.noun()}
	case n.Size > maxEdit:
		return nil, &AdoptError{kind, id, quote(p) + " is too large for an edit"}
	}
	return n.data, nil
}

// partsOf parts what names an edit: a key of the kind, or the same with its last part as it
// stands in the file.
func partsOf(kind, id, what string) (p, rest string, err error) {
	if key, ok := strings.CutPrefix(id, kind+":"); ok {
		parts := scrolls.Key(kind + ":" + key).Parts()
		if len(parts) == 2 {
			return parts[0], parts[1], nil
		}
	} else if p, rest, ok := strings.Cut(id, ":"); ok && rest != "" {
		return p, rest, nil
	}
	return "", "", &AdoptError{kind, id, "name it with its file, like " + quote("/etc/hosts:"+what)}
}

func adoptLine(_ context.Context, w *World, id string) (scrolls.Attrs, error) {
	p, text, err := partsOf(lineKind.Name, id, "10.0.0.5 db")
	if err != nil {
		return nil, err
	}
	content, err := w.editedFile(lineKind.Name, id, p)
	if err != nil {
		return nil, err
	}
	a := scrolls.Attrs{"path": p, "line": text}
	if !scrolls.Spellable(text) || !lineHolds(&scrolls.Glyph{Kind: lineKind.Name, Attrs: a}, content) {
		return nil, &AdoptError{lineKind.Name, id, fmt.Sprintf("no line of %s is equal to it", quote(p))}
	}
	return a, nil
}

// adoptRegion reads the attributes of a region from the block that stands in the file.
func adoptRegion(_ context.Context, w *World, id string) (scrolls.Attrs, error) {
	p, name, err := partsOf(regionKind.Name, id, "NAME")
	if err != nil {
		return nil, err
	}
	content, err := w.editedFile(regionKind.Name, id, p)
	if err != nil {
		return nil, err
	}
	a := scrolls.Attrs{"path": p, "name": name, "content": ""}
	if problems := checkRegion(a); len(problems) > 0 {
		return nil, &AdoptError{regionKind.Name, id, problems[0].Detail}
	}
	there, err := findBlock(a, content)
	if err != nil {
		return nil, &AdoptError{regionKind.Name, id, err.Error()}
	}
	if there == nil {
		begin, _ := regionMarkers(a)
		return nil, &AdoptError{regionKind.Name, id, fmt.Sprintf("no line of %s is %q", quote(p), begin)}
	}
	first := string(there.lines[0])
	if indent := first[:len(first)-len(strings.TrimLeft(first, " \t"))]; indent != "" {
		a["indent"] = indent
	}
	var body strings.Builder
	for _, line := range there.lines[1 : len(there.lines)-1] {
		body.WriteString(strings.TrimPrefix(string(line), str(a, "indent")) + "\n")
	}
	a["content"] = body.String()
	if !scrolls.Spellable(body.String()) || !regionHolds(&scrolls.Glyph{Kind: regionKind.Name, Attrs: a}, content) {
		return nil, &AdoptError{regionKind.Name, id, "what is in the block cannot be said in a scroll as it is"}
	}
	return a, nil
}

// adoptEntry declares one key of a structured file: PATH:a.b.c, or a member of the list there,
// PATH:a.b.c:[MEMBER].
func adoptEntry(_ context.Context, w *World, id string) (scrolls.Attrs, error) {
	wrong := func(why string) error { return &AdoptError{entryKind.Name, id, why} }
	a, steps, err := entryOf(id)
	if err != nil {
		return nil, wrong(err.Error())
	}
	content, err := w.editedFile(entryKind.Name, id, str(a, "path"))
	if err != nil {
		return nil, err
	}
	format := formatOf(a)
	if format == "" {
		return nil, wrong("the file's name does not say how it is written. Declare it with a format = " + formatNames())
	}
	var value any
	there := false
	for _, places := range []bool{false, true} { // a number may be a name, or a place in a list
		if key := keyOf(steps, places); !there && key != nil {
			a["key"] = key
			if value, there, err = entry.Get(format, content, entryWish(a)); err != nil {
				return nil, wrong(quote(str(a, "path")) + ": " + err.Error())
			}
		}
	}
	if !there {
		return nil, wrong("the key is not there")
	}
	member, isMember := a["member"]
	if !isMember {
		a["value"] = value
		return a, nil
	}
	list, _ := value.([]any)
	for _, m := range list {
		if memberText(m) == member {
			a["member"] = m
			return a, nil
		}
	}
	return nil, wrong("the list has no such member")
}

// entryOf reads a key's parts: the path, the document, the steps and the member.
func entryOf(id string) (a scrolls.Attrs, steps []string, err error) {
	text := strings.TrimPrefix(id, entryKind.Name+":")
	a = scrolls.Attrs{}
	if at := strings.LastIndex(text, ":["); at >= 0 && strings.HasSuffix(text, "]") {
		a["member"] = unescaped(text[at+2 : len(text)-1])
		text = text[:at]
	}
	parts := strings.Split(text, ":")
	if len(parts) == 3 {
		number, ok := strings.CutPrefix(parts[1], "document ")
		if _, err := strconv.Atoi(number); ok && err == nil {
			a["document"] = json.Number(number)
			parts = slices.Delete(parts, 1, 2)
		}
	}
	_, member := a["member"]
	if len(parts) != 2 || parts[1] == "" && !member {
		return nil, nil, errors.New("name it with its file and the steps of its key, like " + quote("/etc/app.json:log.level"))
	}
	a["path"] = unescaped(parts[0])
	if parts[1] != "" {
		for step := range strings.SplitSeq(parts[1], ".") {
			steps = append(steps, unescaped(step))
		}
	}
	return a, steps, nil
}

// unescaped is a part of a key as it was before it was escaped.
func unescaped(part string) string { return scrolls.Key("x:" + part).Parts()[0] }

// keyOf spells the steps of a key as a scroll has them. With places, steps that are numbers
// count members; nil where that makes no difference.
func keyOf(steps []string, places bool) any {
	plain, counts := true, false
	list := make([]any, len(steps))
	for i, step := range steps {
		list[i] = step
		if n, err := strconv.Atoi(step); places && err == nil && n >= 0 && strconv.Itoa(n) == step {
			list[i], counts = json.Number(step), true
		}
		plain = plain && step != "" && !strings.Contains(step, ".")
	}
	switch {
	case places && !counts:
		return nil
	case plain && !counts && len(steps) > 0:
		return strings.Join(steps, ".")
	}
	return list
}

// adoptAccess declares an entry of a path's ACL: PATH:user:NAME, or PATH:group:NAME.
func adoptAccess(_ context.Context, w *World, id string) (scrolls.Attrs, error) {
	wrong := func(format string, args ...any) error {
		return &AdoptError{accessKind.Name, id, fmt.Sprintf(format, args...)}
	}
	text := strings.TrimPrefix(id, accessKind.Name+":")
	parts := scrolls.Key(accessKind.Name + ":" + text).Parts()
	if len(parts) != 3 || parts[1] != "user" && parts[1] != "group" {
		return nil, wrong("name the path and whom the entry is for, like %q", "/srv/data:user:backup")
	}
	a := scrolls.Attrs{"path": parts[0], parts[1]: parts[2], "perms": "r"}
	if problems := checkAccess(a); len(problems) > 0 {
		return nil, wrong("%s", problems[0].Detail)
	}
	g := &scrolls.Glyph{Kind: accessKind.Name, Attrs: a}
	tag, who, err := w.grantee(g)
	if err != nil {
		return nil, wrong("%v", err)
	}
	at, _, err := w.target(g)
	if err != nil {
		return nil, wrong("%v", err)
	}
	p, _, err := w.Host.listsAt(w.d, at.real)
	if err != nil {
		return nil, err
	}
	access, standard, err := p.lists()
	if err != nil {
		return nil, err
	}
	perm := access.perm(tag, who)
	if perm < 0 {
		return nil, wrong("its ACL has no entry for the %s %s", parts[1], quote(parts[2]))
	}
	if perm&^access.mask() != 0 {
		return nil, wrong("the mask of its ACL keeps a part of the entry from it; golem would widen that")
	}
	if a["perms"] = strings.ReplaceAll(permText(perm), "-", ""); perm == 0 {
		return nil, wrong("the entry grants nothing, which golem does not declare")
	}
	if standard != nil && standard.perm(tag, who) == perm && perm&^standard.mask() == 0 {
		a["default"] = true
	}
	return a, nil
}

// adoptNetwork declares a network of podman's or docker's as it is.
func adoptNetwork(ctx context.Context, w *World, name string) (scrolls.Attrs, error) {
	var n *podNetwork
	e, there, err := whichEngine(w, func(e podEngine) (there bool, err error) {
		n, err = e.network(ctx, name)
		return n != nil, err
	})
	if err != nil {
		return nil, err
	}
	if !there {
		return nil, &AdoptError{networkKind.Name, name, e.name + " has no such network"}
	}
	a := scrolls.Attrs{"name": name}
	if e.name != engines[0] {
		a["engine"] = e.name
	}
	if n.Driver != "bridge" {
		a["driver"] = n.Driver
	}
	if subnets := n.subnets(); len(subnets) > 0 {
		a["subnet"] = subnets[0].Subnet
		if subnets[0].Gateway != "" {
			a["gateway"] = subnets[0].Gateway
		}
	}
	if n.Internal {
		a["internal"] = true
	}
	labels, options := map[string]any{}, map[string]any{}
	for key, value := range n.Labels {
		if !strings.HasPrefix(key, labelPrefix) {
			labels[key] = value
		}
	}
	for key, value := range n.Options {
		options[key] = value
	}
	if len(labels) > 0 {
		a["labels"] = labels
	}
	if len(options) > 0 {
		a["options"] = options
	}
	return a, nil
}

// adoptedLabel is the label of an adopted glyph's block: what names it, else a name for
// people.
func adoptedLabel(k Kind, a scrolls.Attrs) string {
	if k.LabelAttr != "" {
		return str(a, k.LabelAttr)
	}
	if steps := stepTexts(a); k.Name == entryKind.Name && len(steps) > 0 && steps[len(steps)-1] != "" {
		return steps[len(steps)-1]
	}
	return path.Base(str(a, "path"))
}
