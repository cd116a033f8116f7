package reconcilers

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"golem/scrolls"
)

// tarOf is an archive of some files, in order.
func tarOf(t *testing.T, files ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for i := 0; i+1 < len(files); i += 2 {
		err := w.WriteHeader(&tar.Header{Name: files[i], Mode: 0o644, Size: int64(len(files[i+1])), Typeflag: tar.TypeReg})
		if err == nil {
			_, err = w.Write([]byte(files[i+1]))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestArchivesSayTheirImagesID(t *testing.T) {
	oci := []string{
		"oci-layout", "{}", "blobs/sha256/aa", `{"config":{"digest":"sha256:cc"}}`,
		"index.json", `{"manifests":[{"digest":"sha256:aa","annotations":{"org.opencontainers.image.ref.name":"x:1"}}]}`, "blobs/sha256/cc", "{}",
	}
	docker := []string{"dd.json", "{}", "manifest.json", `[{"Config":"dd.json","RepoTags":["x:1"]}]`}
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, err := z.Write(tarOf(t, docker...))
	if err := errors.Join(err, z.Close()); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		data []byte
		id   string
	}{
		"oci": {tarOf(t, oci...), "cc"}, "docker": {tarOf(t, docker...), "dd"}, "zipped": {zipped.Bytes(), "dd"},
		"no archive": {[]byte("nothing of the kind"), ""}, "empty": {nil, ""}, "cut": {tarOf(t, oci...)[:700], ""},
		"another archive": {tarOf(t, "a", "b"), ""},
		"several images":  {tarOf(t, "index.json", `{"manifests":[{"digest":"sha256:a"},{"digest":"sha256:b"}]}`), ""},
		"no manifest":     {tarOf(t, "index.json", `{"manifests":[{"digest":"sha256:a"}]}`), ""},
	} {
		image, err := readArchive(bytes.NewReader(c.data))
		if id := image.id; id != c.id || (image.names == 1) != (err == nil) || (err == nil) != (c.id != "") || err != nil && !errors.Is(err, errNotImage) {
			t.Errorf("%s: %+v, %v", name, image, err)
		}
	}
}

func TestPortsAreReadAndMet(t *testing.T) {
	for text, want := range map[string]string{
		"8080:80": "8080/tcp", "127.0.0.1:8080:80/udp": "127.0.0.1:8080/udp", "[::1]:53:53/tcp": "[::1]:53/tcp",
		"80": "", "0:80": "", "8080:70000": "", "x:80:80": "", "999.0.0.1:80:80": "", "80-90:80": "", "80:80/icmp": "",
	} {
		if p, ok := portOf(text); ok != (want != "") || ok && p.String() != want {
			t.Errorf("%q is %v, %v", text, p, ok)
		}
	}
	all := sockets{}
	for text, via := range map[string]string{"0100007F:1F90": "tcp", "00000000000000000000000000000000:0050": "tcp", "0000000000000000FFFF00000100000A:0035": "udp"} {
		ip, n, ok := procAddr(text)
		if !ok {
			t.Fatalf("%s cannot be read", text)
		}
		all[via+fmt.Sprint(n)] = append(all[via+fmt.Sprint(n)], ip)
	}
	for text, busy := range map[string]bool{
		"8080:1": true, "127.0.0.1:8080:1": true, "10.0.0.1:8080:1": false, "10.0.0.1:80:1": true, "8080:1/udp": false,
		"10.0.0.1:53:1/udp": true, "0.0.0.0:53:1/udp": true, "10.0.0.2:53:1/udp": false,
	} {
		if p, _ := portOf(text); all.has(p) != busy {
			t.Errorf("%s is taken: %v", text, !busy)
		}
	}
}

// A host without an engine is told what it lacks, unless the run brings it.
func TestEngineThatIsNotThereOrComes(t *testing.T) {
	h, err := OpenHost(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	h.Booted = true
	h.Exec = func(_ context.Context, c Command) (Output, error) {
		return Output{}, &CommandError{Argv: c.Argv, Code: -1, Err: fmt.Errorf("exec: %q: %w", c.Argv[0], exec.ErrNotFound)}
	}
	g := &scrolls.Glyph{Kind: "container", Attrs: scrolls.Attrs{"name": "web", "image": "app:1", "networks": []any{"lan"}}, Key: "container:web"}
	turn := func(w *World) (*Turn, error) {
		if _, mistakes, err := containerKeeper.Locate(context.Background(), w, []*scrolls.Glyph{g}, nil); err != nil || len(mistakes) > 0 {
			t.Fatal(mistakes, err)
		}
		return containerKeeper.Turn(context.Background(), w, Request{Set: []*scrolls.Glyph{g}, Sort: ContainerSort, Resource: "podman:web"})
	}
	w := NewWorld(h, nil)
	defer w.Close()
	var missing *NoEngineError
	if _, err := turn(w); !errors.As(err, &missing) || Mendable(err) || !strings.Contains(missing.Hint(), `apt "podman"`) {
		t.Errorf("without podman: %v", err)
	}
	w.InForce = func(key scrolls.Key) *scrolls.Glyph {
		if key == "apt:podman" {
			return g
		}
		return nil
	}
	w.Forget()
	found, err := turn(w)
	if err != nil || len(found.Changes) != 1 || !strings.Contains(found.Changes[0].Reason, "made from app:1, which is pulled first, and started") {
		t.Errorf("with podman on its way: %+v, %v", found, err)
	}
	w.Acts = true
	w.Forget()
	if _, err := turn(w); !errors.As(err, &missing) {
		t.Errorf("when it should be there: %v", err)
	}
}
