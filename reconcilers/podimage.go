package reconcilers

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golem/scrolls"
	"golem/state"
)

// imageSort is the sort of images that golem pulled; a resource is the engine's name and
// the image as the glyph has it.
const imageSort = "image"

// An imageState says whether an image is there, and by which id an archive's is known.
type imageState struct {
	There bool   `json:"there,omitempty"`
	ID    string `json:"id,omitempty"`
}

// An imageBody is the ledger's line about an image.
type imageBody struct {
	ID string `json:"id,omitempty"`
	// Names is how many names an archive gives its image; nil where that is not known.
	Names *int `json:"names,omitempty"`
}

// archiveOf parts the name of an image that is in a file.
func archiveOf(image string) (scheme, file string, ok bool) {
	scheme, file, found := strings.Cut(image, ":")
	return scheme, file, found && (scheme == "oci-archive" || scheme == "docker-archive")
}

// imageLabels are those of an image; none where it is not there any more.
func (e podEngine) imageLabels(ctx context.Context, id string) (map[string]string, error) {
	out, err := e.ask(ctx, "image", "inspect", "--format", "{{json .Config.Labels}}", id)
	var failed *CommandError
	if errors.As(err, &failed) && failed.Code > 0 {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	labels := map[string]string{}
	if err := json.Unmarshal([]byte(strings.TrimSpace(out)), &labels); err != nil {
		return nil, fmt.Errorf("ask %s about the image %s: %w", e.name, id, err)
	}
	return labels, nil
}

// imageID is the id of an image that is there; "" where it is not. An archive's is looked
// up by the id that it has inside.
func (e podEngine) imageID(ctx context.Context, image string) (string, error) {
	if _, _, ok := archiveOf(image); ok {
		inside, err := e.archived(image)
		if inside.id == "" || err != nil {
			return "", err
		}
		image = inside.id
	}
	out, err := e.ask(ctx, "image", "inspect", "--format", "{{.Id}}", image)
	var failed *CommandError
	if errors.As(err, &failed) && failed.Code > 0 {
		if strings.Contains(failed.Said, "Cannot connect") {
			return "", err
		}
		return "", nil
	}
	if errors.As(err, new(*NoEngineError)) && e.comes() {
		return "", nil
	}
	return strings.TrimPrefix(strings.TrimSpace(out), "sha256:"), err
}

// bring pulls an image if it is not there. It returns what a container is made from.
func (e podEngine) bring(ctx context.Context, image string) (string, error) {
	_, file, archive := archiveOf(image)
	id, err := e.imageID(ctx, image)
	if err != nil {
		return "", err
	}
	if id == "" {
		args := []string{"pull", "--quiet", image}
		if archive && e.name == "docker" {
			args = []string{"load", "--quiet", "--input", file}
		}
		if _, err := e.do(ctx, false, args...); err != nil {
			return "", fmt.Errorf("pull %s: %w", image, err)
		}
		if id, err = e.imageID(ctx, image); err == nil && id == "" {
			err = fmt.Errorf("pull %s: %s says that it did, and has no such image", image, e.name)
		}
	}
	if archive {
		return id, err
	}
	return image, err
}

// An archivedImage is the image in an archive.
type archivedImage struct {
	id    string
	names int // how many it is given
}

// archived is the image in an archive; none where the file is not there.
func (e podEngine) archived(image string) (archivedImage, error) {
	_, file, _ := archiveOf(image)
	f, err := os.Open(filepath.Join(e.w.Host.Root, file))
	if errors.Is(err, os.ErrNotExist) {
		return archivedImage{}, nil
	}
	if err != nil {
		return archivedImage{}, fmt.Errorf("read %s: %w", quote(file), bare(err))
	}
	defer f.Close()
	inside, err := readArchive(f)
	if err != nil {
		return archivedImage{}, fmt.Errorf("read %s: %w", quote(file), err)
	}
	return inside, nil
}

var errNotImage = errors.New("it is not an archive of one image")

// maxManifest bounds what is read of an archive: its descriptions, not its layers.
const maxManifest = 4 << 20

// readArchive finds the id of an archive's image: the hash of its configuration.
func readArchive(f io.Reader) (archivedImage, error) {
	buffered := bufio.NewReader(f)
	if magic, _ := buffered.Peek(2); string(magic) == "\x1f\x8b" {
		zipped, err := gzip.NewReader(buffered)
		if err != nil {
			return archivedImage{}, fmt.Errorf("%w: %w", errNotImage, err)
		}
		return readTar(tar.NewReader(zipped))
	}
	return readTar(tar.NewReader(buffered))
}

// readTar reads what an image archive says of its image: from docker's manifest.json, or from
// an OCI layout's index.json.
func readTar(t *tar.Reader) (image archivedImage, err error) {
	small := map[string][]byte{}
	for {
		head, err := t.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return image, fmt.Errorf("%w: %w", errNotImage, err)
		}
		if head.Typeflag != tar.TypeReg || head.Size > maxManifest || len(small) > 1000 {
			continue
		}
		data, err := io.ReadAll(t)
		if err != nil {
			return image, fmt.Errorf("%w: %w", errNotImage, err)
		}
		small[path.Clean(head.Name)] = data
	}
	if data, ok := small["manifest.json"]; ok {
		var list []struct {
			Config   string
			RepoTags []string
		}
		if err := json.Unmarshal(data, &list); err != nil || len(list) != 1 {
			return image, errNotImage
		}
		return archivedImage{strings.TrimSuffix(path.Base(list[0].Config), ".json"), len(list[0].RepoTags)}, nil
	}
	type descriptor struct {
		Digest      string
		Annotations map[string]string
	}
	var index struct{ Manifests []descriptor }
	var manifest struct{ Config descriptor }
	blob := func(d descriptor) []byte { return small["blobs/"+strings.ReplaceAll(d.Digest, ":", "/")] }
	if err := json.Unmarshal(small["index.json"], &index); err != nil || len(index.Manifests) != 1 {
		return image, errNotImage
	}
	if err := json.Unmarshal(blob(index.Manifests[0]), &manifest); err != nil || manifest.Config.Digest == "" {
		return image, errNotImage
	}
	image.id = strings.TrimPrefix(manifest.Config.Digest, "sha256:")
	if index.Manifests[0].Annotations["org.opencontainers.image.ref.name"] != "" {
		image.names = 1
	}
	return image, nil
}

// images keeps the images that golem pulled: by-products of containers, which go when no
// container needs them.
type images struct{ sole[imageState] }

// noGlyphs is of an owner of by-products: no glyph is about one.
type noGlyphs[S any] struct{}

func (noGlyphs[S]) resource(g *scrolls.Glyph) string { return string(g.Key) }

func (noGlyphs[S]) prepare(context.Context, *World, []*scrolls.Glyph, []string) ([]Mistake, error) {
	return nil, nil
}

func (noGlyphs[S]) want(_ context.Context, _ *World, v view[S]) (goal[S], error) {
	return goal[S]{}, fmt.Errorf("read %s: no glyph is about a by-product", v.Resource)
}

func (noGlyphs[S]) back(_ context.Context, _ *World, v view[S]) (goal[S], error) {
	return goal[S]{}, fmt.Errorf("read %s: no glyph is about a by-product", v.Resource)
}

func (noGlyphs[S]) show(S) map[string]any { return nil }

// imageOwner tells of one image.
type imageOwner struct{ noGlyphs[imageState] }

func (imageOwner) look(ctx context.Context, w *World, resource string) (imageState, error) {
	e, image := splitResource(w, resource)
	id, err := e.imageID(ctx, image)
	return imageState{There: id != "", ID: id}, err
}

func (imageOwner) move(ctx context.Context, w *World, _ Store, m motion[imageState]) error {
	e, image := splitResource(w, m.resource)
	if m.to.There {
		_, err := e.bring(ctx, image)
		return err
	}
	body := imageBody{ID: m.from.ID}
	for _, change := range m.step.Ledger { // it forgets the image
		if change.Sort != imageSort || change.Before == nil {
			continue
		}
		if err := json.Unmarshal(change.Before.Body, &body); err != nil {
			return fmt.Errorf("read what is known of the image %s: %w", image, err)
		}
	}
	return e.removeImage(ctx, image, body)
}

// removeImage removes an image unless somebody has a use for it. One from an archive is
// known by its id alone, and goes by its names: the engine takes it by the id only if it
// has no more than one.
func (e podEngine) removeImage(ctx context.Context, image string, body imageBody) error {
	names := []string{image}
	if _, _, archive := archiveOf(image); archive {
		image = body.ID
		names = []string{body.ID}
	}
	there, err := e.imageID(ctx, image)
	if err != nil || there == "" {
		return err
	}
	if why, err := e.inUse(ctx, there, body); err != nil || why != "" {
		return err
	}
	if image == body.ID {
		tags, err := e.tags(ctx, there)
		if err != nil {
			return err
		}
		if len(tags) > 0 {
			names = tags
		}
	}
	if _, err := e.do(ctx, false, append([]string{"rmi"}, names...)...); err != nil {
		return fmt.Errorf("remove the image %s: %w", image, err)
	}
	return nil
}

// tags are the names of an image.
func (e podEngine) tags(ctx context.Context, id string) ([]string, error) {
	out, err := e.ask(ctx, "image", "inspect", "--format", "{{json .RepoTags}}", id)
	if err != nil {
		return nil, err
	}
	var tags []string
	if err := json.Unmarshal([]byte(strings.TrimSpace(out)), &tags); err != nil {
		return nil, fmt.Errorf("ask %s about the image %s: %w", e.name, shortID(id), err)
	}
	return tags, nil
}

// inUse says what somebody uses an image that golem pulled for; "" for nothing. One from an
// archive that has more names than that gave it is somebody's by now; one that was pulled by
// its name loses that name, and no other.
func (e podEngine) inUse(ctx context.Context, id string, body imageBody) (string, error) {
	users, err := e.users(ctx, id)
	if err != nil {
		return "", err
	}
	if len(users) > 0 {
		return nounNames("container", users) + map[bool]string{true: " is", false: " are"}[len(users) == 1] + " made from it", nil
	}
	if body.ID == "" || body.Names == nil {
		return "", nil
	}
	tags, err := e.tags(ctx, id)
	if err != nil || len(tags) <= *body.Names {
		return "", err
	}
	return "somebody gave it another name: it is called " + sentence(tags), nil
}

// users are the containers made from an image, by name, less those of golem's that the
// turns before take away.
func (e podEngine) users(ctx context.Context, image string) ([]string, error) {
	picked, err := e.picked(ctx, "ancestor="+image)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, p := range picked {
		if p.pod != nil && p.pod.mark() != "" {
			if s, ok := containerKeeper.foreseen(e.w, e.resourceOf(p.pod)); ok && s.ID != p.id {
				continue
			}
		}
		names = append(names, p.name)
	}
	return names, nil
}

// Sweep implements Reconciler: images that golem pulled go when no glyph needs them and no
// container of somebody else's is made from them.
func (r images) Sweep(ctx context.Context, w *World) ([]*Turn, error) {
	var turns []*Turn
	for _, entry := range w.Ledger {
		if entry == nil || entry.Sort != imageSort || w.Needed(RecordKey(imageSort, entry.Resource)) {
			continue
		}
		e, image := splitResource(w, entry.Resource)
		var body imageBody
		if err := json.Unmarshal(entry.Body, &body); err != nil {
			return nil, fmt.Errorf("read what is known of the image %s: %w", image, err)
		}
		now, err := r.own.look(ctx, w, entry.Resource)
		if err != nil {
			return nil, err
		}
		if body.ID != "" && !now.There { // the archive may be gone by now
			now = imageState{ID: body.ID}
			out, err := e.imageID(ctx, body.ID)
			if err != nil {
				return nil, err
			}
			now.There = out != ""
		}
		to, why := now, ""
		if now.There {
			if why, err = e.inUse(ctx, now.ID, body); err != nil {
				return nil, err
			}
			if why == "" {
				to = imageState{}
			}
		}
		turns = append(turns, r.sweepTurn(w, entry.Resource, now, to, why))
	}
	slices.SortFunc(turns, func(a, b *Turn) int { return strings.Compare(a.Resource, b.Resource) })
	return turns, nil
}

// There implements Lasting.
func (r images) There(w *World, resource string) (bool, error) {
	s, err := r.own.look(context.Background(), w, resource)
	return s.There, err
}

// sweepTurn is a turn about a by-product, which the ledger forgets with it; left says why it
// stays.
func (r sole[S]) sweepTurn(w *World, resource string, now, to S, left string) *Turn {
	t := &Turn{Request: Request{Sort: r.sort, Resource: resource, Late: true}, Seen: soleSight(encode(now)), Leaves: to}
	t.Acts = string(encode(now)) != string(encode(to))
	t.Step = &state.Step{Sort: r.sort, Resource: resource, Inverse: encode(now), Expect: encode(to)}
	t.work = &soleWork[S]{m: motion[S]{resource: resource, from: now, to: to}, g: goal[S]{reason: left}}
	setEntry[struct{}](t, w, r.sort, resource, nil)
	return t
}
