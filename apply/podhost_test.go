package apply_test

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golem/reconcilers"
	"golem/reconcilers/fake"
	"golem/scrolls"
)

// A podHost is a lawHost with podman and docker.
type podHost struct {
	*lawHost
	*fake.Pods
	t tester
}

// podHostAt lets fake engines answer for a host, with what they remember of an earlier
// process.
func podHostAt(l *lawHost) *podHost {
	h := &podHost{lawHost: l, Pods: &fake.Pods{State: filepath.Join(l.dir, "pods")}}
	l.arrange = func(host *reconcilers.Host) {
		host.Booted = true
		host.Exec = func(_ context.Context, c reconcilers.Command) (reconcilers.Output, error) {
			a, ok := h.Run(c.Argv...)
			out := reconcilers.Output{Stdout: []byte(a.Out), Stderr: []byte(a.Err)}
			if !ok {
				return out, fmt.Errorf("run %s: %w", c.Argv[0], exec.ErrNotFound)
			}
			if a.Code != 0 {
				return out, &reconcilers.CommandError{Argv: c.Argv, Code: a.Code, Said: a.Err, Err: fmt.Errorf("exit status %d", a.Code)}
			}
			return out, nil
		}
		host.Sleep = func(context.Context, time.Duration) error { return nil }
	}
	return h
}

// newPodHost makes a host with images, some of them to be pulled, and with what is
// somebody else's: containers, of which one is to be adopted and one runs on a network, the
// network, and a volume.
func newPodHost(t cleaner) *podHost {
	l := newLawHost(t)
	t.Cleanup(l.remove)
	h := podHostAt(l)
	h.t = t
	for _, engine := range []string{"podman", "docker"} {
		h.Change(engine, func(e *fake.Engine) {
			for n, name := range []string{"app:1", "app:2", "app:3", "app:4"} {
				image := &fake.Image{ID: strings.Repeat(fmt.Sprint(n+1), 64), Names: []string{name}, Volume: n == 0}
				if n < 2 {
					e.Images[image.ID] = image
				} else {
					e.Registry[name] = image
				}
			}
			e.Volumes["found"] = false
		})
		h.Host(engine, "network", "create", "--subnet=10.5.0.0/24", "found")
		h.Host(engine, "create", "--name=beside", "--network=found", "--restart=always", "app:1", "serve")
		h.Host(engine, "start", "beside")
		h.Host(engine, "create", "--name=mine", "--env=A=1", "--publish=80:80", "app:1", "serve")
		h.Host(engine, "start", "mine")
	}
	return h
}

// less is the fingerprint without the named volumes that golem's containers came with,
// which stay.
func (h *podHost) less() string {
	var lines []string
	for line := range strings.Lines(h.Print()) {
		if f := strings.Fields(line); f[1] != "volume" || f[2] != "data" {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return strings.Join(lines, "\n")
}

func (h *podHost) same(when, want string) {
	if got := h.less(); got != want {
		h.t.Fatalf("%s:\nwas\n%s\nis\n%s", when, want, got)
	}
}

func container(name, image string, attrs ...any) *scrolls.Glyph {
	a := scrolls.Attrs{"name": name, "image": image}
	for i := 0; i+1 < len(attrs); i += 2 {
		a[attrs[i].(string)] = attrs[i+1]
	}
	return glyph("container", a)
}

func network(name, subnet string, attrs ...any) *scrolls.Glyph {
	a := scrolls.Attrs{"name": name, "subnet": subnet}
	for i := 0; i+1 < len(attrs); i += 2 {
		a[attrs[i].(string)] = attrs[i+1]
	}
	return glyph("network", a)
}
