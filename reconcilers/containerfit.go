package reconcilers

import (
	"context"
	"fmt"
)

// fit implements fitter: what a new container needs is there by then.
func (containerOwner) fit(w *World, t *Turn, m motion[containerState]) error {
	g := m.glyph
	e, name := splitResource(w, m.resource)
	if starts := m.to.Running && (!m.from.Running || m.to.Make != m.from.Make); starts && len(t.Set) > 0 && !w.Acts {
		if err := e.portsFree(name, m); err != nil {
			return err
		}
	}
	if len(t.Set) == 0 || m.to.Make == "" || m.to.Make == m.from.Make {
		return nil
	}
	for _, mount := range mountsOf(g.Attrs) {
		if mount.source == "" {
			continue
		}
		there, err := w.standsAt(mount.source)
		if err != nil {
			return &AttrError{Attr: "mounts", Summary: "Source cannot be mounted", Err: err}
		}
		if !there {
			return &AttrError{Attr: "mounts", Summary: "Source is not there", Err: fmt.Errorf(
				"%s is to be mounted, and will not be there when the container is made. Declare it before, as a directory or a file", quote(mount.source))}
		}
	}
	for _, network := range namedNetworks(g) {
		there, err := e.hasNetwork(context.Background(), network)
		if err != nil {
			return err
		}
		if !there {
			return &AttrError{Attr: "networks", Summary: "No such network", Err: fmt.Errorf(
				"the network %s will not be there when the container is made. Declare it before", quote(network))}
		}
	}
	return noteImage(w, t, e, str(g.Attrs, "image"))
}

// standsAt says whether there will be something at a path by then.
func (w *World) standsAt(p string) (bool, error) {
	at, err := w.resolve(p, true)
	if err != nil {
		return false, err
	}
	n, err := w.look(at.real)
	return n.Type != Absent, err
}

// noteImage puts an image that golem will pull on the ledger.
func noteImage(w *World, t *Turn, e podEngine, image string) error {
	resource := e.name + ":" + image
	if w.Ledger[RecordKey(imageSort, resource)] != nil {
		return nil
	}
	id, err := e.imageID(context.Background(), image)
	if err != nil || id != "" {
		return err
	}
	var body imageBody
	if _, file, ok := archiveOf(image); ok {
		there, err := w.standsAt(file)
		if err == nil && !there {
			err = &AttrError{Attr: "image", Summary: "Archive is not there", Err: fmt.Errorf("the image's archive %s will not be there when the container is made", quote(file))}
		}
		if err == nil {
			var inside archivedImage
			inside, err = e.archived(image)
			body = imageBody{ID: inside.id, Names: &inside.names}
		}
		if err != nil {
			return err
		}
	}
	setEntry(t, w, imageSort, resource, &body)
	return nil
}
