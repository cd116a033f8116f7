package reconcilers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golem/scrolls"
)

// prepare does what can go wrong before anything is stopped: the image is there, and the
// ports are free.
func (k *containerMove) prepare(ctx context.Context) (string, error) {
	image, err := k.e.bring(ctx, str(k.glyph.Attrs, "image"))
	if err != nil || k.m.reverse || !k.m.to.Running {
		return image, err
	}
	all, err := k.all(ctx)
	if err != nil {
		return "", err
	}
	busy := k.w.Host.listening()
	for _, p := range portsOf(k.glyph.Attrs) {
		if own := byName(all, k.name); busy.has(p) && (own == nil || !own.up() || !own.publishes(p)) {
			return "", &PortError{Container: k.name, Port: p.String()}
		}
	}
	return image, nil
}

// create makes the container. What is sensitive stands in a file that only golem's user
// reads, and only as long as this takes.
func (k *containerMove) create(ctx context.Context, image string) error {
	g := k.glyph
	made := *g
	made.Attrs = lessAttrs(g.Attrs, "state") // what changes in place is no part of what it was made as
	args := []string{
		"create", "--name=" + k.name, "--pull=never", "--label=" + labelKey + "=" + string(g.Key),
		"--label=" + labelCID + "=" + string(CID(&made)), "--label=" + labelMake + "=" + k.m.to.Make,
	}
	for _, name := range slices.Sorted(maps.Keys(object(g.Attrs, "labels"))) {
		args = append(args, fmt.Sprintf("--label=%s=%v", name, object(g.Attrs, "labels")[name]))
	}
	if restart := str(g.Attrs, "restart"); restart != "" {
		args = append(args, "--restart="+restart)
	}
	for _, p := range words(g.Attrs, "ports") {
		args = append(args, "--publish="+p)
	}
	for _, m := range mountsOf(g.Attrs) {
		args = append(args, "--mount="+m.option())
	}
	if networks := words(g.Attrs, "networks"); len(networks) > 0 {
		args = append(args, "--network="+networks[0]) // it is connected to the others afterwards
	}
	if err := envFits(g); err != nil {
		return fmt.Errorf("make the container %s: %w", k.name, err)
	}
	env, done, err := k.env(g)
	if err != nil {
		return err
	}
	args = append(append(args, env...), image)
	_, err = k.e.do(ctx, secret(g), append(args, words(g.Attrs, "command")...)...)
	if err := errors.Join(err, done()); err != nil {
		return fmt.Errorf("make the container %s: %w", k.name, err)
	}
	return nil
}

// envFits refuses a sensitive variable of more than one line: it would have to stand in a
// file, and no engine reads it from there.
func envFits(g *scrolls.Glyph) error {
	if !slices.Contains(g.Secret, "env") {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(object(g.Attrs, "env"))) {
		if value, _ := object(g.Attrs, "env")[name].(string); strings.ContainsAny(value, "\r\n") {
			return &AttrError{Attr: "env", Summary: "Sensitive variable has several lines", Err: fmt.Errorf(
				"the engine reads sensitive variables from a file, a line each, and %s has several lines. Write it to a file of its own, and mount that", name)}
		}
	}
	return nil
}

// env are the arguments for the environment, and what clears up behind them.
func (k *containerMove) env(g *scrolls.Glyph) (args []string, done func() error, err error) {
	var text strings.Builder
	hidden := slices.Contains(g.Secret, "env")
	for _, name := range slices.Sorted(maps.Keys(object(g.Attrs, "env"))) {
		line := fmt.Sprintf("%s=%v", name, object(g.Attrs, "env")[name])
		switch {
		case !hidden:
			args = append(args, "--env="+line)
		default:
			text.WriteString(line + "\n")
		}
	}
	if !hidden {
		return args, func() error { return nil }, nil
	}
	dir, err := k.w.Host.scratchDir("env")
	if err != nil {
		return nil, nil, err
	}
	file := filepath.Join(dir, "env")
	done = func() error { return os.RemoveAll(dir) }
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("write the environment: %w", err), done())
	}
	return []string{"--env-file=" + file}, done, nil
}

// A PortError says that a port of the host is taken.
type PortError struct {
	Container, Port string
	By              string // the container that has it; "" where that is not known
}

func (e *PortError) Error() string {
	text := fmt.Sprintf("make the container %s: port %s of the host is in use", e.Container, e.Port)
	if e.By != "" {
		text += " by the container " + e.By
	}
	return text
}

// Hint says how to see who has it.
func (e *PortError) Hint() string {
	return "see who listens there with: ss -lntup"
}
