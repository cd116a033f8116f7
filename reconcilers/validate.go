package reconcilers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"
	"golang.org/x/sys/unix"

	"golem/scrolls"
)

// candidateWord is what stands in a validate command for the new file's path.
const candidateWord = "%s"

var validateAttr = scrolls.Attr{
	Name: "validate", Type: cty.List(cty.String), Hint: `Write each word on its own: ["sshd", "-t", "-f", "%s"].`,
	Doc: "A command that has to accept the new file before it takes its place, each word on its own; `%s` is the path of the " +
		"new file, beside the old one. Ends it with a status that is not 0, the leaf fails, and the file is as it was. " +
		"More in [the language](../language.md#validate).",
}

// checkValidate says what is wrong with a validate command.
func checkValidate(a scrolls.Attrs) []scrolls.Problem {
	if _, ok := a["validate"]; !ok {
		return nil
	}
	argv := words(a, "validate")
	wrong := func(summary, detail string) []scrolls.Problem {
		return []scrolls.Problem{{Attr: "validate", Summary: summary, Detail: detail}}
	}
	switch {
	case len(argv) == 0 || argv[0] == "":
		return wrong("Command is empty", "The first word is the program.")
	case strings.Contains(strings.Join(argv, ""), "\x00"):
		return wrong("Command holds a NUL byte", "No word of a command can hold one.")
	case strings.Contains(argv[0], candidateWord):
		return wrong("Command is the new file", `The first word is the program that looks at the file, like "sshd" in ["sshd", "-t", "-f", "%s"].`)
	case !slices.ContainsFunc(argv, func(word string) bool { return strings.Contains(word, candidateWord) }):
		return wrong("Command does not look at the new file", `Write %s where the new file's path is to stand: ["sshd", "-t", "-f", "%s"].`)
	}
	return nil
}

// A test is a command that must accept a new file before it takes its place.
type test struct {
	argv   []string
	secret bool          // the command must not be shown
	quiet  bool          // nor what it says
	keys   []scrolls.Key // whose it is
}

func (t test) text() string {
	if t.secret {
		return "a command that is secret"
	}
	return shownWords(t.argv)
}

// shownWords spells an argument list for a person.
func shownWords(argv []string) string {
	shown := make([]string, len(argv))
	for i, word := range argv {
		if shown[i] = word; word == "" || strings.ContainsAny(word, " \t\n\"'") {
			shown[i] = quote(word)
		}
	}
	return strings.Join(shown, " ")
}

// tests are what the turn's result has to pass: what every glyph that is on the path then
// asks for, whosever it is, each once.
func (k *work) tests() []test {
	var tests []test
	add := func(key scrolls.Key, g *scrolls.Glyph) {
		argv := words(g.Attrs, "validate")
		if now := k.w.InForce(key); now != nil && now != g && len(argv)+len(words(now.Attrs, "validate")) > 0 && CID(now) == CID(g) {
			g = now // it may ask for another test since
			argv = words(g.Attrs, "validate")
		}
		if len(argv) == 0 {
			return
		}
		at := slices.IndexFunc(tests, func(t test) bool { return slices.Equal(t.argv, argv) })
		if at < 0 {
			at = len(tests)
			tests = append(tests, test{argv: argv, quiet: k.secretNear(g)})
		}
		tests[at].secret = tests[at].secret || slices.Contains(g.Secret, "validate")
		tests[at].keys = append(tests[at].keys, key)
	}
	if k.base != nil {
		add(k.base.Key, k.base.Glyph)
	}
	for _, layer := range k.edits {
		add(layer.Key, layer.Glyph)
	}
	return tests
}

// tellTests says in the plan what the new file has to pass: with each change its own, and
// with the first those of glyphs that do not change.
func (k *work) tellTests(s *shift) {
	if !s.tested() || len(k.t.Changes) == 0 {
		return
	}
	told := map[string]bool{}
	say := func(c *Change, t test) {
		if text := t.text(); !told[text] {
			told[text] = true
			c.Reason = strings.TrimPrefix(c.Reason+"; the new file has to pass: "+text, "; ")
		}
	}
	for _, g := range k.r.Set {
		for i := range k.t.Changes {
			for _, t := range s.tests {
				if c := &k.t.Changes[i]; c.Key == g.Key && slices.Equal(t.argv, words(g.Attrs, "validate")) {
					say(c, t)
				}
			}
		}
	}
	for _, t := range s.tests {
		say(&k.t.Changes[0], t)
	}
}

// tested says whether a shift puts a new file in place that has to pass something.
func (s *shift) tested() bool {
	w := s.way()
	return len(s.tests) > 0 && s.to.Type == File && (w == wayMake || w == waySwap || w == wayOver)
}

// testNew lets the commands look at the new file beside its target, before it takes its
// place. Where it is refused, nothing of it is left.
func (b *batch) testNew(ctx context.Context, dirfd int, s *shift) error {
	if !s.tested() {
		return nil
	}
	over := s.way() == wayOver
	if over { // what is written in place has nothing beside it
		if err := b.makeFile(dirfd, s); err != nil {
			b.discard(dirfd, s)
			return err
		}
	}
	err := b.runTests(ctx, dirfd, s)
	if err != nil {
		b.discard(dirfd, s)
		return err
	}
	if !over {
		return nil
	}
	if err := b.h.fault("unlink", s.path); err != nil {
		return err
	}
	return wrap(unix.Unlinkat(dirfd, s.temp, 0), "remove what was tested for", s.path)
}

// runTests runs a shift's tests on the new file, which lies beside its target, one after
// another.
func (b *batch) runTests(ctx context.Context, dirfd int, s *shift) error {
	dir, _ := split(s.path)
	candidate, err := filepath.Abs(filepath.Join(b.h.Root, dir, s.temp))
	if err != nil {
		return fmt.Errorf("find the new %s: %w", quote(s.path), err)
	}
	for _, t := range s.tests {
		if err := b.h.fault("validate", s.path); err != nil {
			return err
		}
		err := b.runTest(ctx, s.path, candidate, t)
		if refused := (*RefusedError)(nil); errors.As(err, &refused) {
			refused.Keys = t.keys
		}
		if err != nil {
			return err
		}
	}
	if err := b.h.fault("validated", s.path); err != nil {
		return err
	}
	left, err := observeAt(dirfd, s.temp, 0)
	if err != nil {
		return fmt.Errorf("look at the new %s: %w", quote(s.path), err)
	}
	if left.Type != File || left.Hash != s.to.Hash || metaDiffers(left, s.to) != "" {
		return &RefusedError{Path: s.path, Err: errors.New("a command that was to look at the new file changed it")}
	}
	return nil
}

// runTest runs one command on the new file. A *RefusedError says that it refused.
func (b *batch) runTest(ctx context.Context, path, candidate string, t test) error {
	argv := slices.Clone(t.argv)
	for i := range argv {
		argv[i] = strings.ReplaceAll(argv[i], candidateWord, candidate)
	}
	if b.h.Exec == nil {
		program, err := program(argv[0])
		if err != nil {
			return &RefusedError{Path: path, Missing: true, Err: err}
		}
		argv[0] = program
	}
	out, err := b.h.Do(ctx, Command{Argv: argv, Talk: true, Awaited: true, Secret: t.secret, Timeout: b.timeout})
	var failed *CommandError
	if err == nil || ctx.Err() != nil || !errors.As(err, &failed) {
		return err
	}
	told := *failed
	told.Argv = slices.Clone(t.argv)
	told.Secret = t.secret
	if told.Said == "" && told.Code > 0 {
		told.Said = strings.TrimSpace(string(out.Stdout)) // some have their say there
	}
	told.Said = strings.ReplaceAll(told.Said, candidate, path)
	if t.quiet || t.secret {
		told.Said = ""
	}
	if t.secret {
		told.Argv = []string{"a command that is secret"}
	}
	return &RefusedError{Path: path, Err: &told}
}

// program finds a program by name, as a shell of root's would: cron's PATH lacks where the
// tests of daemons' files are.
func program(name string) (string, error) {
	found, err := exec.LookPath(name)
	if err == nil || strings.Contains(name, "/") {
		return found, err
	}
	for _, dir := range []string{"/usr/local/sbin", "/usr/sbin", "/sbin"} {
		at := filepath.Join(dir, name)
		if st, serr := os.Stat(at); serr == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0 {
			return at, nil
		}
	}
	return "", err
}

// extension is the end of a path's name by which its type is known; "" for none.
func extension(p string) string {
	_, name := split(p)
	if ext := filepath.Ext(strings.TrimLeft(name, ".")); len(ext) > 1 && len(ext) < 32 {
		return ext
	}
	return ""
}

// A RefusedError is a new file that a validate command did not accept, or that it could
// not look at.
type RefusedError struct {
	Path    string
	Missing bool // there is no such program
	Err     error
	// Keys are the glyphs that ask for the command.
	Keys []scrolls.Key
}

// About says which glyphs an error is about, of all that a step changes.
func (e *RefusedError) About() []scrolls.Key { return e.Keys }

func (e *RefusedError) Error() string { return fmt.Sprintf("validate %s: %s", quote(e.Path), e.Err) }
func (e *RefusedError) Unwrap() error { return e.Err }

// Hint says what can be done.
func (e *RefusedError) Hint() string {
	if e.Missing {
		return "install the program in an earlier leaf, or take validate out"
	}
	return "the file is as it was; what the command said is about the new one"
}
