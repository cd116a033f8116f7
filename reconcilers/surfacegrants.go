package reconcilers

import (
	"encoding/json"
	"maps"
	"slices"

	"golem/state"
)

// A grantedPath is one path of a grant, with its lists as they are in attributes; what has
// no access list has what its mode says, of three entries.
type grantedPath struct {
	Path    Bytes  `json:"path"`
	Dir     bool   `json:"dir,omitempty"`
	Access  []byte `json:"access"`
	Default []byte `json:"default,omitempty"`
}

// lists are the path's lists.
func (p grantedPath) lists() (access, standard acl, err error) {
	access, err = parseACL(p.Access)
	if err == nil && len(p.Default) > 0 {
		standard, err = parseACL(p.Default)
	}
	return access, standard, err
}

func granted(path string, dir bool, access, standard acl) grantedPath {
	p := grantedPath{Path: Bytes(path), Dir: dir, Access: access.bytes()}
	if standard != nil {
		p.Default = standard.bytes()
	}
	return p
}

// A grantState is what golem knows of one grant: whose it is, and the lists of every path
// that it is on. As what was found, the lists are those without any grant of golem's.
type grantState struct {
	Tag   uint16        `json:"tag,omitempty"`
	ID    uint32        `json:"id,omitempty"`
	Paths []grantedPath `json:"paths,omitempty"`
	// Awaits is what is not there yet: "user", "group", "path".
	Awaits string `json:"awaits,omitempty"`
}

func (s grantState) at(path string) (grantedPath, bool) {
	i := slices.IndexFunc(s.Paths, func(p grantedPath) bool { return string(p.Path) == path })
	if i < 0 {
		return grantedPath{}, false
	}
	return s.Paths[i], true
}

// grants are golem's on one path, in its access list and in its default list.
type grants struct{ access, standard []grant }

// grantsOn are all grants of golem's on a path, as the journal has them.
func (w *World) grantsOn(path string) (grants, error) {
	type index struct {
		at  map[string]grants
		err error
	}
	all := keepAt(w, "grants", func() *index {
		in := &index{at: map[string]grants{}}
		for _, key := range slices.Sorted(maps.Keys(w.Records)) { // in one order each time
			if rec := w.Records[key]; rec.Sort == accessSort && in.err == nil {
				in.err = indexGrants(in.at, rec)
			}
		}
		return in
	})
	return all.at[path], all.err
}

// indexGrants adds the entries that one grant's record has to those of each path.
func indexGrants(at map[string]grants, rec *state.Record) error {
	var left, found grantState
	if len(rec.After) == 0 {
		return nil
	}
	if err := json.Unmarshal(rec.After, &left); err != nil {
		return err
	}
	if !IsUnknown(rec.Found) {
		if err := json.Unmarshal(rec.Found, &found); err != nil {
			return err
		}
	}
	before := map[string]grantedPath{}
	for _, p := range found.Paths {
		before[string(p.Path)] = p
	}
	for _, p := range left.Paths {
		was, ok := before[string(p.Path)]
		access, standard, err := grantOf(rec.Resource, left, p, was, ok)
		if err != nil {
			return err
		}
		all := at[string(p.Path)]
		if access.perm >= 0 {
			all.access = append(all.access, access)
		}
		if standard.perm >= 0 && len(rec.Layers) > 0 && isTrue(rec.Layers[0].Glyph, "default") {
			all.standard = append(all.standard, standard)
		}
		at[string(p.Path)] = all
	}
	return nil
}

// grantOf is what a grant wrote into a path's lists, and what was there.
func grantOf(by string, s grantState, left, found grantedPath, known bool) (access, standard grant, err error) {
	a, d, err := left.lists()
	if err != nil {
		return access, standard, err
	}
	access = grant{s.Tag, s.ID, a.perm(s.Tag, s.ID), -1, -1, by}
	standard = grant{s.Tag, s.ID, d.perm(s.Tag, s.ID), -1, noList, by}
	if known {
		fa, fd, err := found.lists()
		if err != nil {
			return access, standard, err
		}
		access.found, access.mask = fa.perm(s.Tag, s.ID), fa.mask()
		standard.found, standard.mask = fd.perm(s.Tag, s.ID), maskOf(fd)
	}
	return access, standard, nil
}

// masksBeneath are the masks beneath golem's grants on a path: as the surface there was left,
// where there is one, for it may have set them; else as they were found.
func (w *World) masksBeneath(path string, on grants) (access, standard int, err error) {
	access, standard = -1, noList
	if len(on.access) > 0 {
		access = on.access[0].mask
	}
	if len(on.standard) > 0 {
		standard = on.standard[0].mask
	}
	rec := w.Record(PathSort, path)
	if rec == nil || len(rec.After) == 0 {
		return access, standard, nil
	}
	var left trace
	if err := json.Unmarshal(rec.After, &left); err != nil {
		return access, standard, err
	}
	if left.Node.Type != File && left.Node.Type != Dir {
		return access, standard, nil
	}
	access, standard = nodeACL(left.Node).mask(), noList
	if data, ok := left.Node.Xattrs[aclDefault]; ok {
		d, err := parseACL(data)
		if err != nil {
			return access, standard, err
		}
		standard = d.mask()
	}
	return access, standard, nil
}

// stripGrants takes golem's grants from what stands at a path, for a surface, which knows
// nothing of them. regrant puts those that were there back on what it wants there.
func (k *work) stripGrants() error {
	k.host = k.now
	if k.now.Type != File && k.now.Type != Dir {
		return nil
	}
	on, err := k.w.grantsOn(k.r.Resource)
	if err != nil || len(on.access)+len(on.standard) == 0 {
		return err
	}
	k.grants = on
	ma, md, err := k.w.masksBeneath(k.r.Resource, on)
	if err != nil {
		return err
	}
	access, standard := nodeACL(k.now), acl(nil)
	if data, ok := k.now.Xattrs[aclDefault]; ok {
		if standard, err = parseACL(data); err != nil {
			return err
		}
	}
	k.now = k.now.withACLs(access.strip(on.access, on.access, ma), stripDefault(standard, on.standard, on.standard, md))
	return nil
}

// regrant is what a surface wants with the entries of golem's grants, as they are on the host,
// put on it again.
func (k *work) regrant(want Node) Node {
	if len(k.grants.access)+len(k.grants.standard) == 0 || want.Type != File && want.Type != Dir {
		return want
	}
	if differs(k.now, want) == "" {
		return k.host // nothing but what somebody else did to the mask
	}
	had, access := nodeACL(k.host), nodeACL(want)
	for _, g := range k.grants.access {
		if perm := had.perm(g.tag, g.id); perm >= 0 {
			access = access.put(g.tag, g.id, perm)
		}
	}
	var standard acl
	if data, ok := want.Xattrs[aclDefault]; ok {
		if a, err := parseACL(data); err == nil {
			standard = a
		}
	}
	if want.Type == Dir {
		was, err := parseACL(k.host.Xattrs[aclDefault])
		for _, g := range k.grants.standard {
			if perm := was.perm(g.tag, g.id); err == nil && perm >= 0 {
				if standard == nil {
					standard = was.base()
				}
				standard = standard.put(g.tag, g.id, perm)
			}
		}
	}
	return want.withACLs(access, standard)
}

// base is a list's entries for the owner, the group and others alone.
func (a acl) base() acl {
	return slices.DeleteFunc(slices.Clone(a), func(e aclEntry) bool { return e.tag == aclUser || e.tag == aclGroup || e.tag == aclMask })
}
