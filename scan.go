package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"golem/plan"
	"golem/reconcilers"
	"golem/scrolls"
	"golem/state"
)

// scan proposes a scroll for what differs from the host's packages. What golem has in force is
// no part of it, and neither is what a plan would not leave as it is.
func (a *app) scan(ctx context.Context, s *session) error {
	snap, err := s.snapshot()
	if err != nil {
		return err
	}
	world := reconcilers.NewWorld(s.host, nil)
	defer world.Close()
	found, err := reconcilers.Scan(ctx, world, snap.Applied)
	if err != nil {
		return err
	}
	p := &proposal{name: lineageName(s.host.Name()), notes: found.Notes}
	for _, part := range found.Parts {
		for _, one := range part.Proposals {
			adopted, err := reconcilers.Adopt(ctx, world, one.Kind, one.ID)
			if err != nil {
				p.notes = append(p.notes, err.Error())
				continue
			}
			p.all = append(p.all, proposed{part.Leaf, adopted.Key(), one.Why, string(adopted.Text())})
		}
	}
	if err := p.settle(ctx, s); err != nil {
		return err
	}
	laid, err := scrolls.Format([]byte(p.text(s.host.Name())), "the scroll")
	if err != nil {
		return fmt.Errorf("lay out the scroll: %w", err)
	}
	_, err = a.out.Write(laid)
	return err
}

// A proposed is one glyph of a proposal.
type proposed struct {
	leaf string
	key  scrolls.Key
	why  string
	text string
}

// A proposal is a scroll that a scan proposes.
type proposal struct {
	name  string
	all   []proposed
	notes []string
}

// settle takes out what a plan refuses or would change, with a note: the scroll is to change
// nothing.
func (p *proposal) settle(ctx context.Context, s *session) error {
	bad, err := s.changed(ctx, p.text(""))
	if refusal := (*scrolls.Diagnostics)(nil); errors.As(err, &refusal) { // of one of them: which
		bad = map[scrolls.Key]string{}
		for _, one := range p.all {
			alone := &proposal{name: p.name, all: []proposed{one}}
			more, err := s.changed(ctx, alone.text(""))
			if errors.As(err, &refusal) {
				more = map[scrolls.Key]string{one.key: refusal.All[0].Detail}
			} else if err != nil {
				return err
			}
			for key, why := range more {
				bad[key] = why
			}
		}
	} else if err != nil {
		return err
	}
	var stay []proposed
	for _, one := range p.all {
		if why := bad[one.key]; why != "" {
			p.notes = append(p.notes, fmt.Sprintf("%s (%s): golem would change it: %s", one.key, one.why, strings.TrimSuffix(why, ".")))
			continue
		}
		stay = append(stay, one)
	}
	p.all = stay
	return nil
}

// changed plans a scroll on the host as it is, without a journal, and says of each glyph that it
// would change what it would do.
func (s *session) changed(ctx context.Context, text string) (map[scrolls.Key]string, error) {
	scroll, err := scrolls.LoadText(text, scrolls.Options{Kinds: reconcilers.Kinds(), Checks: reconcilers.Checks, Facts: s.host.Facts()})
	if err != nil {
		return nil, fmt.Errorf("read the proposal: %w", err)
	}
	world := reconcilers.NewWorld(s.host, nil)
	defer world.Close()
	p, err := plan.Make(plan.Input{Context: ctx, Scroll: scroll, Lineage: scroll.Name, Host: s.host.Name(), Snapshot: &state.Snapshot{}, World: world})
	if err != nil {
		return nil, err
	}
	bad := map[scrolls.Key]string{}
	for _, c := range p.Changes() {
		if c.Effect != reconcilers.EffectRecord {
			bad[c.Key] = c.Reason
		}
	}
	return bad, nil
}

// text is the scroll, with what is not in it in comments.
func (p *proposal) text(host string) string {
	var text strings.Builder
	fmt.Fprintf(&text, "# What differs on %s from its packages, found by golem adopt --scan. It changes nothing: read it,\n# keep what is meant, and delete the rest.\nname = %q\n", host, p.name)
	leaf := ""
	for _, one := range p.all {
		if one.leaf != leaf {
			if leaf != "" {
				text.WriteString("}\n")
			}
			leaf = one.leaf
			fmt.Fprintf(&text, "\nscroll %q {", leaf)
		}
		fmt.Fprintf(&text, "\n# %s\n%s", comment(one.why), one.text)
	}
	if leaf != "" {
		text.WriteString("}\n")
	}
	for _, note := range p.notes {
		fmt.Fprintf(&text, "\n# Not proposed: %s\n", comment(note))
	}
	return text.String()
}

// comment is a text of one line, without what steers a terminal.
func comment(text string) string { return plan.Printable(strings.Join(strings.Fields(text), " ")) }

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
