package reconcilers

import (
	"path"
	"slices"
	"strings"
)

// A kin is what enabling a unit is about: the unit, those that are enabled with it, and
// the names that they get.
type kin struct {
	units, aliases map[string]bool
	paths          map[string]bool // links that are the unit's whatever they are called
}

// kinOf reads it from the units' files.
func (w *World) kinOf(id string) kin {
	k := kin{units: map[string]bool{}, aliases: map[string]bool{}, paths: map[string]bool{}}
	w.addKin(&k, id)
	return k
}

func (w *World) addKin(k *kin, name string) {
	if k.units[name] || checkUnitName("", name) != nil {
		return
	}
	k.units[name] = true
	for _, alias := range w.namedIn(name, "Install", "Alias") {
		k.aliases[alias] = true
	}
	for _, also := range w.namedIn(name, "Install", "Also") {
		w.addKin(k, also)
	}
}

// namedIn lists the units that a section of a unit's file names under some keys.
func (w *World) namedIn(name, section string, keys ...string) []string {
	var names []string
	for _, text := range w.unitTexts(name) {
		in := false
		for _, line := range strings.Split(text, "\n") {
			line = strings.TrimSpace(line)
			key, value, _ := strings.Cut(line, "=")
			switch {
			case strings.HasPrefix(line, "["):
				in = line == "["+section+"]"
			case in && slices.Contains(keys, strings.TrimSpace(key)):
				for _, word := range strings.Fields(value) {
					names = append(names, expandUnit(word, name))
				}
			}
		}
	}
	return names
}

// unitTexts are a unit's file and its drop-ins. A mask is no file: it reads as nothing.
func (w *World) unitTexts(name string) []string {
	var all []string
	for _, n := range []string{name, unitTemplate(name)} {
		for _, dir := range unitDirs {
			if n == "" || len(all) > 0 {
				continue
			}
			if text := w.Host.small(path.Join(dir, n)); text != "" {
				all = append(all, text)
			}
		}
	}
	for _, dir := range unitDirs {
		names, err := w.Host.readDir(path.Join(dir, name+".d"))
		if err != nil {
			continue // a drop-in nobody can read says nothing of aliases
		}
		for _, n := range names {
			if strings.HasSuffix(n, ".conf") {
				all = append(all, w.Host.small(path.Join(dir, name+".d", n)))
			}
		}
	}
	return all
}

// expandUnit puts a unit's name in the place of the specifiers that an [Install]
// section may have.
func expandUnit(word, name string) string {
	if !strings.Contains(word, "%") {
		return word
	}
	prefix, instance, suffix, _ := unitParts(name)
	last := prefix[strings.LastIndexByte(prefix, '-')+1:]
	return strings.NewReplacer("%%", "%", "%n", name, "%N", strings.TrimSuffix(name, "."+suffix),
		"%p", prefix, "%i", instance, "%j", last).Replace(word)
}
