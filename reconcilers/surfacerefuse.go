package reconcilers

import "fmt"

// strange says that golem's layers all go and that something stands at the path which
// golem did not put there and does not displace: somebody else's interest.
func (k *work) strange() bool {
	if k.s.before == nil || k.base != nil || len(k.edits) > 0 {
		return false
	}
	ours := File
	if k.s.base != nil {
		kind, _ := KindOf(k.s.base.Glyph.Kind)
		ours = kind.base.typ
	}
	switch k.now.Type {
	case Special:
		return true
	case Dir:
		return ours != Dir
	case File, Link:
		return ours == Dir
	}
	return false
}

// refuse says what golem will not do at this path, whatever the scroll says.
func (k *work) refuse() error {
	p := quote(k.r.Resource)
	if k.base == nil && len(k.edits) == 0 {
		return nil
	}
	for _, h := range k.w.heldAt(k.r.Resource) {
		if h.entry.Type != Dir && k.w.stays(h.layer) {
			return fmt.Errorf("%s belongs to %s of the lineage %q; it has to be left out there, with exclude", p, h.layer.Key, h.layer.Lineage)
		}
	}
	if k.now.Type == Special {
		return fmt.Errorf("%s is a device, a socket or a pipe; golem neither replaces nor edits one", p)
	}
	if k.base == nil {
		return k.refuseEdits(p)
	}
	if err := k.refuseForeign(p); err != nil {
		return err
	}
	kind, _ := KindOf(k.base.Glyph.Kind)
	ownDir := k.s.base != nil && k.s.under.Type == Absent && k.s.base.Glyph.Kind == directoryKind.Name
	switch want := kind.base.typ; {
	case k.beneath.Type == Special:
		return fmt.Errorf("%s was a device, a socket or a pipe; golem replaces none", p)
	case want != Dir && k.beneath.Type == Dir, want != Dir && k.now.Type == Dir && !ownDir:
		return fmt.Errorf("%s is a directory; a %s is declared there. Golem replaces no directory that was there, or that holds something; declare another path", p, kind.Name)
	case want == Dir && (k.beneath.Type == File || k.beneath.Type == Link):
		return fmt.Errorf("%s is a %s; a directory is declared there. Move it away, or declare another path", p, k.beneath.Type)
	case want == Link && k.beneath.Type == File && k.beneath.Links > 1:
		return fmt.Errorf("%s has %d names (hard links); a link in its place would part it from the others for good", p, k.beneath.Links)
	}
	return nil
}

// refuseForeign refuses a new base where another lineage holds a layer.
func (k *work) refuseForeign(p string) error {
	if k.s.before == nil || k.base.Lineage != k.r.Lineage || k.s.base != nil && k.s.base.Key == k.base.Key {
		return nil
	}
	for _, layer := range k.s.before.Layers {
		if layer.Lineage != k.r.Lineage {
			return fmt.Errorf("%s holds %s of the lineage %q; what lies beneath it cannot be declared by another", p, layer.Key, layer.Lineage)
		}
	}
	return nil
}

func (k *work) refuseEdits(p string) error {
	switch {
	case k.now.Type == Dir:
		return fmt.Errorf("%s is a directory, and cannot be edited as a file", p)
	case k.now.Type == Link:
		return fmt.Errorf("%s became a link while golem looked", p)
	case k.now.Type == File && k.now.Size > maxEdit:
		return fmt.Errorf("%s is too large to be edited (%s; the limit is %s)", p, bytesText(k.now.Size), bytesText(maxEdit))
	}
	return nil
}

// checkFlags refuses to change what chattr(1) protects.
func checkFlags(p string, n Node) error {
	switch {
	case n.Flags == Any:
		return nil
	case n.Flags&flagImmutable != 0:
		return fmt.Errorf("%s is immutable; lift that with: chattr -i %s", quote(p), quote(p))
	case n.Flags&flagAppend != 0:
		return fmt.Errorf("%s is append-only; lift that with: chattr -a %s", quote(p), quote(p))
	}
	return nil
}
