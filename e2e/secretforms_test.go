package e2e

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// forms are the shapes in which a secret could show: itself, encoded, hashed, alone and
// with the end of its line.
func forms(secret string) []string {
	quoted, _ := json.Marshal(secret)
	all := []string{
		secret, strings.ReplaceAll(secret, "/", `\/`), strings.ReplaceAll(secret, "/", "%2F"), url.QueryEscape(secret), url.PathEscape(secret),
		strings.Trim(string(quoted), `"`), strings.Trim(strconv.Quote(secret), `"`), strings.Trim(strconv.QuoteToASCII(secret), `"`),
		strings.ReplaceAll(secret, "'", `'\''`), strings.ReplaceAll(strings.Trim(strconv.Quote(secret), `"`), "${", "$${"),
	}
	for at := range 3 { // base64 of it anywhere within something longer
		text := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", at) + secret))
		from, to := []int{0, 2, 3}[at], len(text)/4*4-4
		all = append(all, text[from:to], strings.NewReplacer("+", "-", "/", "_").Replace(text[from:to]))
	}
	for _, text := range []string{secret, secret + "\n", "password is " + secret + "\n", "password=" + secret, "db " + secret + "\n"} {
		sha, md, one, long := sha256.Sum256([]byte(text)), md5.Sum([]byte(text)), sha1.Sum([]byte(text)), sha512.Sum512([]byte(text))
		all = append(all, hex.EncodeToString([]byte(text)), strings.ToUpper(hex.EncodeToString([]byte(text))))
		for _, sum := range [][]byte{sha[:], md[:], one[:], long[:]} {
			all = append(all, hex.EncodeToString(sum)[:12], base64.StdEncoding.EncodeToString(sum)[:16])
		}
	}
	return all
}

// joints are what stands between the parts of a text that was wrapped: blanks, frames, and the
// quotes and commas of a list.
var joints = regexp.MustCompile(`[\s│|>+-]+`)

// hides wants no form of a secret in what golem printed or wrote, split over lines neither.
func hides(t *testing.T, secret, said string) {
	t.Helper()
	joined := joints.ReplaceAllString(said, "")
	for _, form := range forms(secret) {
		if at := strings.Index(said, form); at >= 0 {
			t.Errorf("%q is in what golem printed: …%s", form, said[max(0, at-300):min(len(said), at+len(form)+40)])
		} else if form := joints.ReplaceAllString(form, ""); len(form) > 6 && strings.Contains(joined, form) {
			t.Errorf("%q is in what golem printed, in parts:\n%s", form, said)
		}
	}
}

// TestFormsFindASecretInEveryShape: the tests above can fail.
func TestFormsFindASecretInEveryShape(t *testing.T) {
	const secret = "s3cret-Value-9/+x"
	for _, text := range []string{
		secret, base64.StdEncoding.EncodeToString([]byte("ab" + secret + "cd")), base64.URLEncoding.EncodeToString([]byte("a" + secret + "c")),
		hex.EncodeToString([]byte(secret)), url.QueryEscape(secret), fmt.Sprintf("%x", sha256.Sum256([]byte(secret)))[:12],
	} {
		if !slices.ContainsFunc(forms(secret), func(form string) bool { return strings.Contains(text, form) }) {
			t.Errorf("nothing finds %s", text)
		}
	}
	if joined := joints.ReplaceAllString("s3cret-\n  Value-9/+x", ""); !strings.Contains(joined, joints.ReplaceAllString(secret, "")) {
		t.Errorf("nothing finds one that is split: %s", joined)
	}
}

// secretValues are expressions of many types with a secret in them.
var secretValues = []string{
	"var.pw", "[var.pw]", "{ a = var.pw }", "{ (var.pw) = \"x\" }", "{ a = [var.pw] }", "[{ source = var.pw }]",
	"\"/etc/${var.pw}\"", "\"%s${var.pw}\"", "sensitive(\"" + theSecret + "\")",
}

const secretVariable = "name = \"web\"\nvariable \"pw\" {\n  type = string\n  sensitive = true\n  default = \"" + theSecret + "\"\n}\n"

// TestNoArgumentOfAnyKindShowsASecret gives every argument of every kind values with a secret
// in them, right and wrong ones, and reads what golem makes of it.
func TestNoArgumentOfAnyKindShowsASecret(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	row := regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|")
	pages, err := filepath.Glob("../docs/kinds/*.md")
	if err != nil || len(pages) < 10 {
		t.Fatal(err, pages)
	}
	for _, page := range pages {
		kind := strings.TrimSuffix(filepath.Base(page), ".md")
		args := []string{"for_each", "when", "on_undeclare", "protect", "moved_from"}
		for _, m := range row.FindAllStringSubmatch(readPage(t, page), -1) {
			args = append(args, m[1])
		}
		var scroll strings.Builder
		scroll.WriteString(secretVariable)
		for i, arg := range args {
			for j, value := range secretValues {
				label := fmt.Sprintf("/etc/%s-%d-%d", kind, i, j)
				path := "  path = \"" + label + "\"\n"
				if !slices.Contains([]string{"line", "region", "entry"}, kind) || arg == "path" {
					path = ""
				}
				fmt.Fprintf(&scroll, "%s %q {\n%s  %s = %s\n}\n", kind, label, path, arg, value)
			}
		}
		s.declare(t, scroll.String())
		for _, command := range [][]string{{"plan"}, {"validate", "--json"}} {
			a := s.run(t, 1, command...)
			hides(t, theSecret, a.stdout+a.stderr)
		}
	}
}

// TestASecretThatIsSpelledOutStandsInNoSnippet: what a scroll itself says is sensitive is not
// in the lines that go with a mistake.
func TestASecretThatIsSpelledOutStandsInNoSnippet(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	const lines = "<<-EOT\n    " + theSecret + "\n    " + theSecret + "\n  EOT\n"
	for name, scroll := range map[string]string{
		"a file's content":   "file \"/etc/a\" {\n  content = [\"" + theSecret + "\"]\n  sensitive = true\n}\n",
		"two contents":       "file \"/etc/a\" {\n  content = " + lines + "  content_base64 = " + lines + "  sensitive = true\n}\n",
		"a call":             "file \"/etc/a\" { content = upper([\"x\", sensitive(\"" + theSecret + "\")]) }\n",
		"two calls":          "file \"/etc/a\" { content = sensitive(\"" + theSecret + "\") + sensitive(\"" + theSecret + "\") }\n",
		"a call within":      "file \"/etc/a\" {\n  content = upper(sensitive(\"" + theSecret + "\"), 1)\n  sensitive = true\n}\n",
		"a variable's value": "variable \"pw\" {\n  type = number\n  default = \"" + theSecret + "\"\n  sensitive = true\n}\n",
		"a validation": secretVariable[strings.Index(secretVariable, "variable"):strings.LastIndex(secretVariable, "}")] +
			"  validation {\n    condition = length(var.pw) > 99\n    error_message = \"${var.pw} is too short.\"\n  }\n}\n",
		"a password":           "user \"ann\" { password = [\"" + theSecret + "\"] }\n",
		"a local":              "locals {\n  a = upper([sensitive(\"" + theSecret + "\")])\n}\nfile \"/etc/a\" { content = local.a }\n",
		"a for_each":           "file \"a\" {\n  for_each = [sensitive(\"" + theSecret + "\")]\n  path = each.value\n  content = \"\"\n}\n",
		"a key":                "file \"a\" {\n  for_each = toset([sensitive(\"" + theSecret + "\")])\n  path = \"/etc/${each.key}\"\n  content = \"\"\n}\n",
		"an open quote":        "file \"/etc/a\" {\n  content = \"" + theSecret + "\n  sensitive = true\n}\n",
		"a quote too late":     "file \"/etc/a\" {\n  content = " + theSecret + "\"\n  sensitive = true\n}\n",
		"single quotes":        "variable \"pw\" {\n  default = '" + theSecret + "'\n  sensitive = true\n}\n",
		"no equals sign":       "user \"ann\" {\n  password \"" + theSecret + "\"\n}\n",
		"no brackets":          "locals {\n  a = sensitive \"" + theSecret + "\"\n}\n",
		"a label without end":  "variable \"pw {\n  sensitive = true\n  default = \"" + theSecret + "\"\n}\n",
		"an open brace":        "file \"/etc/a\" {\n  sensitive = true\n  content = <<EOT\nkey \"a\" {\n" + theSecret + " ${ x\n}\nEOT\n}\n",
		"all on one line":      "variable \"pw\" { sensitive = true default = \"" + theSecret + "\" }\n",
		"a list without comma": "command \"a\" {\n  sensitive = true\n  run = [\"a\" \"" + theSecret + "\"]\n}\n",
	} {
		s.declare(t, "name = \"web\"\n"+scroll)
		a := s.run(t, 1, "plan")
		if !strings.Contains(a.stderr, "Error: ") {
			t.Errorf("%s: golem plan says\n%s", name, a.stderr)
		}
		hides(t, theSecret, a.stdout+a.stderr)
	}
}

// TestNoFunctionShowsASecretInItsMistakes calls every function with secrets, alone and beside
// other arguments, in one console.
func TestNoFunctionShowsASecretInItsMistakes(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.declare(t, secretVariable+"locals {\n  m = { a = 1 }\n  obj = { (nonsensitive(\"x\")) = var.pw }\n}\n")
	values := []string{"var.pw", "[var.pw]", "{ a = var.pw }", "local.obj", "1", "\"x\""}
	var lines strings.Builder
	for _, f := range functionsInTheSource(t) {
		if f == "nonsensitive" {
			continue // it is there to show one
		}
		for _, a := range values {
			fmt.Fprintf(&lines, "%s(%s)\n", f, a)
			for _, b := range values {
				fmt.Fprintf(&lines, "%s(%s, %s)\n%s(%s, %s, var.pw)\n", f, a, b, f, a, b)
			}
		}
	}
	for _, e := range []string{
		"local.m[var.pw]", "local.obj.y", "var.pw.x", "var.pw[0]", "-var.pw", "var.pw && true", "var.pw ? 1 : 2", "true ? local.obj : 1",
		"\"${local.obj}\"", "[for x in var.pw : x]", "{for x in [var.pw] : x => x}", "{for x in [1, 2] : var.pw => x}", "[var.pw][*].foo",
		"{ (var.pw) = 1 }", "\"%{ if var.pw }a%{ endif }\"", "\"%{ for x in var.pw }a%{ endfor }\"", "var.pw < 2", "local", "var",
	} {
		lines.WriteString(e + "\n")
	}
	a := call{stdin: lines.String()}.golem(t, "console", "--root", s.root, s.scroll)
	if a.code != 1 || !strings.Contains(a.stdout, "(sensitive value)") || strings.Count(a.stderr, "Error: ") < 1000 {
		t.Fatalf("exit %d, %d answers, %d mistakes", a.code, strings.Count(a.stdout, "\n"), strings.Count(a.stderr, "Error: "))
	}
	hides(t, theSecret, a.stdout+a.stderr)
}
