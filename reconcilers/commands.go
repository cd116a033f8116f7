package reconcilers

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golem/scrolls"
)

// A commandState is what golem knows of a command.
type commandState struct {
	Ran  string `json:"ran,omitempty"`  // the deed that golem ran last and has not undone
	Asks string `json:"asks,omitempty"` // why a guard asks for it
	Rest string `json:"rest,omitempty"` // why it is not to run, though it never has
	// Unsure names the guard that cannot be asked: what that runs is not there.
	Unsure string `json:"unsure,omitempty"`
	// Undone says that its undo ran.
	Undone bool `json:"undone,omitempty"`
}

// A commandKeeper keeps commands: they have triggers.
type commandKeeper struct{ sole[commandState] }

// commands own what commands did. Nothing on the host tells whether one ran but its guards:
// that it did is on record.
type commands struct{}

func (commands) resource(g *scrolls.Glyph) string { return str(g.Attrs, "name") }

func (commands) prepare(_ context.Context, w *World, glyphs []*scrolls.Glyph, _ []string) ([]Mistake, error) {
	if w.Host.Live() {
		return nil, nil
	}
	var mistakes []Mistake
	for _, g := range glyphs {
		mistakes = append(mistakes, Mistake{Glyph: g, Problem: scrolls.Problem{
			Summary: "Needs a live host", Detail: "A command runs on a host that is up, and this is a file tree.",
		}})
	}
	return mistakes, nil
}

func (commands) look(context.Context, *World, string) (commandState, error) {
	return commandState{}, nil
}

// glance asks the guards where their answer decides: what ran as another version runs anew
// whatever they say, and what goes is undone.
func (commands) glance(ctx context.Context, w *World, v view[commandState]) (commandState, error) {
	now := commandState{Ran: v.left.Ran}
	declared := len(v.Set) > 0 && (!v.Blind || v.old == nil || CID(v.old) != CID(v.glyph))
	if !declared || now.Ran != "" && now.Ran != deed(v.glyph) || !guarded(v.glyph) {
		return now, nil
	}
	said, err := askGuards(ctx, w, v.glyph)
	switch {
	case err != nil:
		return now, err
	case said.unsure != "":
		now.Unsure = said.unsure
	case said.runs:
		now.Asks = said.why
	case now.Ran == "":
		now.Rest = said.why
	}
	return now, nil
}

// want works out whether the command runs, from what its guards said and what it last ran as.
func (commands) want(ctx context.Context, w *World, v view[commandState]) (goal[commandState], error) {
	g, d, now := v.glyph, deed(v.glyph), v.now
	to := goal[commandState]{to: commandState{Ran: d}, effect: "run", wild: true, fresh: true, far: guarded(g), found: &commandState{}}
	if v.old != nil && CID(v.old) != CID(g) && !v.Untold {
		to.diff = unified([]byte(spelled(v.old)), []byte(spelled(g)))
	}
	does := "runs " + commandPhrase(g)
	switch {
	case now.Rest != "":
		to.to, to.effect, to.reason = now, EffectRecord, "not run: "+now.Rest
		return to, nil
	case now.Ran == d && now.Asks == "" && now.Unsure == "":
		to.to, to.reason = now, sentence(changedAttrs(v.old, g))+"; it is not run again"
		if v.renamed() {
			to.reason = "was " + string(v.Record.Layers[0].Key) + "; it is not run again"
		}
		return to, nil
	case now.Ran == d || now.Ran == "":
		to.reason = does
		if now.Asks != "" && v.old != nil {
			to.reason = now.Asks + "; " + does
		} else if now.Asks != "" {
			to.reason += ": " + now.Asks
		}
	case hasUndo(v.old):
		to.reason = "runs the undo of the version that ran (" + shownArgv(v.old, "undo") + "), then " + does
	default:
		to.reason = does
		to.irreversible = append(to.irreversible, "what the version that ran did stays: it has no undo")
	}
	needs := map[string]string{"dir": str(g.Attrs, "dir"), "run": words(g.Attrs, "run")[0]}
	if now.Unsure != "" {
		needs[now.Unsure] = words(g.Attrs, now.Unsure)[0]
	}
	if err := w.tooEarly(g, "user", str(g.Attrs, "user"), needs); err != nil {
		return to, err
	}
	to.lacks = missing(ctx, w, g, "run")
	if now.Unsure != "" {
		to.reason += "; whether it is needed is known at apply, when `" + now.Unsure + "` can be asked"
		to.lacks = missing(ctx, w, g, now.Unsure)
	}
	if !hasUndo(g) {
		to.irreversible = append(to.irreversible, "it has no undo")
	}
	return to, nil
}

func (commands) back(_ context.Context, _ *World, v view[commandState]) (goal[commandState], error) {
	g, ran := v.glyph, v.now.Ran != ""
	switch {
	case !mayHaveRun(v.now, g):
		return goal[commandState]{forget: true, reason: "golem did not run it"}, nil
	case !hasUndo(g) && !ran:
		return goal[commandState]{forget: true, reason: "what it is triggered by may have run it; it has no undo"}, nil
	case !hasUndo(g):
		const stays = "it has no undo: what it did stays"
		return goal[commandState]{forget: true, reason: "golem lets go of it", irreversible: []string{stays}}, nil
	}
	to := goal[commandState]{to: commandState{Undone: true}, effect: "undo", wild: true, reason: "runs its undo: " + shownArgv(g, "undo")}
	if !ran {
		to.reason += "; what it is triggered by may have run it"
	}
	return to, nil
}

// mayHaveRun says whether golem ran the command of a glyph: as a step, which is on record,
// or as a trigger's, which is not.
func mayHaveRun(s commandState, g *scrolls.Glyph) bool {
	return s.Ran != "" || g != nil && len(words(g.Attrs, "triggered_by")) > 0
}

func hasUndo(g *scrolls.Glyph) bool { return g != nil && len(words(g.Attrs, "undo")) > 0 }

func guarded(g *scrolls.Glyph) bool {
	return str(g.Attrs, "creates") != "" || len(words(g.Attrs, "unless")) > 0 || len(words(g.Attrs, "onlyif")) > 0
}

func (c commands) move(ctx context.Context, w *World, _ Store, m motion[commandState]) error {
	old, next := m.parts()
	if m.undo {
		return c.takeBack(ctx, w, m, old, next)
	}
	if old != nil && hasUndo(old) && mayHaveRun(m.from, old) && (next == nil || deed(old) != deed(next)) {
		if err := runOf(ctx, w, old, "undo"); err != nil {
			return &StuckUndoError{old.Key, err}
		}
	}
	if m.to.Ran == "" {
		return nil
	}
	return runAndAsk(ctx, w, next)
}

// A StuckUndoError says that the undo of what ran fails, which it will again.
type StuckUndoError struct {
	Key scrolls.Key
	Err error
}

func (e *StuckUndoError) Error() string { return e.Err.Error() }
func (e *StuckUndoError) Unwrap() error { return e.Err }

// Hint says how to get past it.
func (e *StuckUndoError) Hint() string {
	return fmt.Sprintf("apply it once with an undo that works, and run as it was: that runs nothing; or let go of what it did: golem state forget %s", e.Key)
}

// takeBack undoes a step, wherever that got to: the undo of what it ran or was to run, and
// what it had undone once more, unless the guards say that it is there.
func (commands) takeBack(ctx context.Context, w *World, m motion[commandState], old, next *scrolls.Glyph) error {
	if m.from.Ran != "" && hasUndo(next) {
		if err := runOf(ctx, w, next, "undo"); err != nil {
			return err
		}
	}
	if m.to.Ran == "" || m.to.Ran == m.from.Ran || !hasUndo(old) {
		return nil
	}
	if guarded(old) {
		said, err := askGuards(ctx, w, old)
		if err != nil || said.unsure == "" && !said.runs {
			return err
		}
	}
	return runOf(ctx, w, old, "run")
}

func (commands) stays(m motion[commandState], whole bool) string {
	_, next := m.parts()
	switch {
	case next == nil || m.from.Ran == "" || hasUndo(next):
		return ""
	case whole:
		return "it ran and has no undo: what it did stays"
	}
	return "it is not known whether it took effect: it was run, or was about to be, and has no undo"
}

func (commands) show(s commandState) map[string]any {
	if s.Ran == "" {
		return nil
	}
	return map[string]any{"ran": true}
}

// Foretell implements Firer.
func (commandKeeper) Foretell(_ *World, g *scrolls.Glyph, _, _ string) (*UnitEffect, error) {
	var more []string
	if len(words(g.Attrs, "onlyif")) > 0 {
		more = append(more, "if its `onlyif` holds by then")
	}
	if !hasUndo(g) {
		more = append(more, "cannot be undone")
	}
	return &UnitEffect{Do: "run", Reason: strings.Join(more, "; ")}, nil
}

// Fire implements Firer. It runs what is in force: where a rollback fires a trigger, that is
// what stood before.
func (commandKeeper) Fire(ctx context.Context, w *World, g *scrolls.Glyph, resource, _ string) error {
	defer w.forget()
	rec := w.Record(commandSort, resource)
	if rec == nil || len(rec.Layers) == 0 {
		return nil
	}
	if was := rec.Layers[0].Glyph; CID(was) != CID(g) {
		g = was
	}
	if len(words(g.Attrs, "onlyif")) > 0 {
		if holds, err := askCommand(ctx, w, g, "onlyif"); err != nil || !holds {
			return err
		}
	}
	return runAndAsk(ctx, w, g)
}

// commandPhrase is what a command runs, as a person reads it.
func commandPhrase(g *scrolls.Glyph) string {
	text := shownArgv(g, "run")
	if user := str(g.Attrs, "user"); user != "" && !slices.Contains(g.Secret, "user") {
		text += " as " + user
	}
	if dir := str(g.Attrs, "dir"); dir != "" && !slices.Contains(g.Secret, "dir") {
		text += " in " + quote(dir)
	}
	return text
}

func shownArgv(g *scrolls.Glyph, attr string) string {
	if slices.Contains(g.Secret, attr) {
		return "a command that is secret"
	}
	return commandText(words(g.Attrs, attr))
}

// changedAttrs says what of two versions that run the same changes.
func changedAttrs(old, g *scrolls.Glyph) []string {
	var all []string
	for _, attr := range []string{"undo", "creates", "unless", "onlyif"} {
		if old != nil && string(encode(old.Attrs[attr])) != string(encode(g.Attrs[attr])) {
			all = append(all, "its "+attr)
		}
	}
	if len(all) == 1 {
		all[0] += " changes"
	} else if len(all) > 1 {
		all[len(all)-1] += " change"
	}
	return all
}

// spelled lists a command's attributes that are part of its version, for a diff.
func spelled(g *scrolls.Glyph) string {
	var b strings.Builder
	for _, attr := range []string{"run", "undo", "unless", "onlyif"} {
		if argv := words(g.Attrs, attr); len(argv) > 0 {
			fmt.Fprintf(&b, "%s: %s\n", attr, commandText(argv))
		}
	}
	for _, attr := range []string{"creates", "user", "dir"} {
		if text := str(g.Attrs, attr); text != "" {
			fmt.Fprintf(&b, "%s: %s\n", attr, quote(text))
		}
	}
	env := object(g.Attrs, "env")
	for _, name := range slices.Sorted(maps.Keys(env)) {
		fmt.Fprintf(&b, "env: %s=%s\n", name, quote(str(env, name)))
	}
	return b.String()
}
