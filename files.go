package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/aymanbagabas/go-udiff"
	"github.com/urfave/cli/v3"
	"golang.org/x/sys/unix"

	"golem/plan"
	"golem/scrolls"
)

func (a *app) validateCommand() *cli.Command {
	return &cli.Command{
		Name: "validate", Usage: "check a scroll without looking at the host", ArgsUsage: "[PATH]",
		Description: "Exits 1 where something is wrong with it.",
		Flags:       []cli.Flag{jsonFlag},
		Action: func(ctx context.Context, c *cli.Command) error {
			s, err := open(c)
			if err != nil {
				return err
			}
			scroll, err := s.load(ctx)
			if c.Bool("json") {
				return a.tellValid(scroll, err)
			}
			if err != nil {
				return err
			}
			return a.printer(a.out).Printf("%s is valid: %s in %s.\n", plan.Printable(scroll.Name),
				plan.Count(len(scroll.Glyphs()), "glyph", "glyphs"), plan.Count(len(scroll.Leaves), "leaf", "leaves"))
		},
	}
}

// tellValid tells as JSON whether a scroll is valid, and each mistake with its place.
func (a *app) tellValid(scroll *scrolls.Scroll, err error) error {
	var mistakes *scrolls.Diagnostics
	if err != nil && !errors.As(err, &mistakes) {
		return err
	}
	told := map[string]any{"format_version": plan.FormatVersion, "valid": err == nil, "diagnostics": mistakes.Told()}
	if err == nil {
		told["name"], told["glyphs"], told["leaves"] = scroll.Name, len(scroll.Glyphs()), len(scroll.Leaves)
	}
	if werr := plan.WriteJSON(a.out, told); werr != nil {
		return werr
	}
	if err != nil {
		return exitCode(exitError)
	}
	return nil
}

func (a *app) fmtCommand() *cli.Command {
	return &cli.Command{
		Name: "fmt", Usage: "lay out scrolls in the one usual way", ArgsUsage: "[PATH… | -]",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "check", Usage: "change nothing; exit 1 if something would change"},
			&cli.BoolFlag{Name: "diff", Usage: "show what would change"},
		},
		Action: a.format,
	}
}

// format is golem fmt.
func (a *app) format(_ context.Context, c *cli.Command) error {
	paths := c.Args().Slice()
	if len(paths) == 0 {
		paths = []string{"."}
	}
	if len(paths) == 1 && paths[0] == "-" {
		return a.formatStream(c.Bool("check"), c.Bool("diff"))
	}
	files, err := scrollFiles(paths)
	if err != nil {
		return err
	}
	changed := false
	var wrong []error // of one file: the others are laid out all the same
	for _, file := range files {
		differs, err := a.formatFile(file, c.Bool("check"), c.Bool("diff"))
		wrong = append(wrong, err)
		changed = changed || differs
	}
	if err := errors.Join(wrong...); err != nil {
		return err
	}
	if changed && c.Bool("check") {
		return exitCode(exitError)
	}
	return nil
}

func (a *app) formatStream(check, diff bool) error {
	const name = "standard input"
	src, err := io.ReadAll(a.stdin)
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	next, err := scrolls.Format(src, name)
	if err != nil {
		return err
	}
	differs := !bytes.Equal(src, next)
	switch {
	case diff && differs:
		err = a.printer(a.out).Printf("%s", udiff.Unified(name, name+" (formatted)", string(src), string(next)))
	case !diff && !check:
		_, err = a.out.Write(next)
	}
	if err == nil && check && differs {
		err = exitCode(exitError)
	}
	return err
}

// scrollFiles lists the .hcl files that paths name, directories without what is
// beneath them.
func scrollFiles(paths []string) ([]string, error) {
	var files []string
	for _, path := range paths {
		st, err := os.Stat(path)
		if err != nil {
			return nil, fmt.Errorf("read scroll %s: %w", path, errors.Unwrap(err))
		}
		if !st.IsDir() {
			files = append(files, path)
			continue
		}
		found, err := scrolls.Files(path)
		if err != nil {
			return nil, err
		}
		files = append(files, found...)
	}
	if len(files) == 0 {
		return nil, errors.New("fmt: there is no .hcl file here")
	}
	return files, nil
}

func (a *app) formatFile(file string, check, diff bool) (bool, error) {
	src, next, err := scrolls.FormatFile(file)
	if err != nil || bytes.Equal(src, next) {
		return false, err
	}
	out := a.printer(a.out)
	if diff {
		if err := out.Printf("%s", udiff.Unified(file, file+" (formatted)", string(src), string(next))); err != nil {
			return true, err
		}
	} else if err := out.Printf("%s\n", plan.Printable(file)); err != nil {
		return true, err
	}
	if check || diff {
		return true, nil
	}
	return true, replace(file, next)
}

// replace swaps a scroll for its formatted self in one step, keeping its mode and owner. A
// link stays one: what it leads to is swapped.
func replace(file string, data []byte) error {
	file, err := filepath.EvalSymlinks(file)
	if err != nil {
		return fmt.Errorf("write scroll: %w", err)
	}
	var st unix.Stat_t
	if err := unix.Stat(file, &st); err != nil {
		return fmt.Errorf("write scroll %s: %w", file, err)
	}
	tmp, err := os.CreateTemp(filepath.Dir(file), ".fmt-*")
	if err != nil {
		return fmt.Errorf("write scroll: %w", err)
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(data)
	if int(st.Uid) != os.Geteuid() || int(st.Gid) != os.Getegid() {
		err = errors.Join(err, tmp.Chown(int(st.Uid), int(st.Gid)))
	}
	err = errors.Join(err, tmp.Chmod(os.FileMode(st.Mode).Perm()), tmp.Sync(), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), file)
	}
	if err != nil {
		return fmt.Errorf("write scroll: %w", err)
	}
	return nil
}

func (a *app) versionCommand() *cli.Command {
	return &cli.Command{
		Name: "version", Usage: "say which golem this is", Flags: []cli.Flag{jsonFlag},
		Action: withoutArgs(func(_ context.Context, c *cli.Command) error { return a.version(c) }),
	}
}

func (a *app) version(c *cli.Command) error {
	if c.Bool("json") {
		return plan.WriteJSON(a.out, map[string]any{"format_version": plan.FormatVersion, "version": version})
	}
	return a.printer(a.out).Printf("golem %s\n", version)
}
