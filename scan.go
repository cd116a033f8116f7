package main

import (
	"context"
	"fmt"
	"strings"
	"unicode"

	"golem/reconcilers"
	"golem/scrolls"
)

// scan proposes a scroll for what differs from the host's packages.
func (a *app) scan(ctx context.Context, s *session) error {
	world := reconcilers.NewWorld(s.host, nil)
	defer world.Close()
	found, err := reconcilers.Scan(ctx, world)
	if err != nil {
		return err
	}
	var text strings.Builder
	fmt.Fprintf(&text, "# What differs on %s from its packages, found by golem adopt --scan. It changes nothing: read it,\n# keep what is meant, and delete the rest.\nname = %q\n", s.host.Name(), lineageName(s.host.Name()))
	for _, part := range found.Parts {
		var inner strings.Builder
		for _, p := range part.Proposals {
			attrs, err := reconcilers.Adopt(ctx, world, p.Kind, p.ID)
			if err != nil {
				found.Notes = append(found.Notes, err.Error())
				continue
			}
			fmt.Fprintf(&inner, "\n# %s\n%s", p.Why, glyphText(p.Kind, attrs))
		}
		if inner.Len() > 0 {
			fmt.Fprintf(&text, "\nscroll %q {%s}\n", part.Leaf, inner.String())
		}
	}
	for _, note := range found.Notes {
		fmt.Fprintf(&text, "\n# Not proposed: %s\n", strings.ReplaceAll(note, "\n", " "))
	}
	laid, err := scrolls.Format([]byte(text.String()), "the scroll")
	if err != nil {
		return fmt.Errorf("lay out the scroll: %w", err)
	}
	_, err = a.out.Write(laid)
	return err
}

// lineageName makes a lineage's name of a host's.
func lineageName(host string) string {
	name := strings.Map(func(r rune) rune {
		if r < 0x80 && (unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("._-", r)) {
			return r
		}
		return '-'
	}, host)
	if name = strings.Trim(name, "._-"); name == "" {
		return "host"
	}
	return name[:min(len(name), 64)]
}
