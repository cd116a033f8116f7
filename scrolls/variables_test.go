package scrolls

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// more is the value of the argument that takes any type.
func more(t testing.TB, s *Scroll) any {
	t.Helper()
	return only(t, s).Attrs["more"]
}

func TestLaterSourceOfAVariableWins(t *testing.T) {
	dir := write(t, map[string]string{
		"scroll.hcl": `
variable "v" { default = "default" }
job "a" { more = var.v }`,
		"one.vars": `v = "file one"`,
		"two.vars": `v = "file two"`,
	})
	env := func(o *Options) { o.Environ = []string{"GOLEM_VAR_v=env", "GOLEM_VAR_other=ignored", "PATH=/bin"} }
	file := func(name string) func(*Options) {
		return func(o *Options) { o.VarFiles = append(o.VarFiles, filepath.Join(dir, name)) }
	}
	check := func(want string, options ...func(*Options)) {
		t.Helper()
		s, err := loadDir(dir, options...)
		if err != nil {
			t.Fatal(err)
		}
		if got := more(t, s); got != want {
			t.Errorf("%v, want %s", got, want)
		}
	}
	check("default")
	check("env", env)
	for name, text := range map[string]string{"b.auto.vars.hcl": `v = "auto b"`, "a.auto.vars.hcl": `v = "auto a"`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	check("auto b", env)
	check("file one", env, file("one.vars"))
	check("file two", env, file("one.vars"), file("two.vars"))
	check("flag", env, file("two.vars"), vars("v=flag"))
	check("a=b", vars("v=flag", "v=a=b"))
	check("", vars("v="))
}

func TestVariableFromTheCommandLineHasItsType(t *testing.T) {
	cases := []struct {
		typ, given string
		want       any
	}{
		{"", "1.10", "1.10"},
		{"", `["a"]`, `["a"]`},
		{"type = string", "1.10", "1.10"},
		{"type = string", `"quoted" ${x}`, `"quoted" ${x}`},
		{"type = number", "1.10", json.Number("1.1")},
		{"type = bool", "true", true},
		{"type = any", "1.10", json.Number("1.1")},
		{"type = list(string)", `["a", "b"]`, []any{"a", "b"}},
		{"type = map(number)", `{ a = 1 }`, map[string]any{"a": json.Number("1")}},
		{"type = set(string)", `["b", "a", "b"]`, []any{"a", "b"}},
		{"type = object({ a = string, b = optional(number, 5) })", `{ a = "x" }`, map[string]any{"a": "x", "b": json.Number("5")}},
	}
	for _, c := range cases {
		s := must(t, "variable \"v\" {\n"+c.typ+"\n}\njob \"a\" { more = var.v }", vars("v="+c.given))
		if diff := cmp.Diff(c.want, more(t, s)); diff != "" {
			t.Errorf("%s, %s: %s", c.typ, c.given, diff)
		}
	}
}

func TestVariableMayBeNullUnlessItSaysOtherwise(t *testing.T) {
	s := must(t, `
variable "v" {
  type    = string
  default = null
}
job "a" { more = var.v == null ? "none" : var.v }`)
	if got := more(t, s); got != "none" {
		t.Errorf("%v", got)
	}
}

func TestValidationSeesLocalFunctionsAndTheValue(t *testing.T) {
	text := `
variable "port" {
  type = number
  validation {
    condition     = var.port > 0 && can(regex("^[0-9]+$", tostring(var.port)))
    error_message = "bad ${var.port}"
  }
}
job "a" { more = var.port }`
	if got := more(t, must(t, text, vars("port=80"))); got != json.Number("80") {
		t.Errorf("%v", got)
	}
	if got := mistake(t, text, vars("port=-1")); !strings.Contains(got, "bad -1") {
		t.Error(got)
	}
}

func TestLocalsStandInAnyOrder(t *testing.T) {
	s := must(t, `
locals {
  a = "${local.b}-${local["c"]}"
  b = upper(local.c)
}
locals { c = host.os.id }
job "a" { more = local.a }`)
	if got := more(t, s); got != "DEBIAN-debian" {
		t.Errorf("%v", got)
	}
}

func TestManyLocalsDoNotCostTheirSquare(t *testing.T) {
	var b strings.Builder
	b.WriteString("locals {\n")
	for i := range 20_000 {
		fmt.Fprintf(&b, "  l%d = local.l%d\n", i, i+1)
	}
	b.WriteString("  l20000 = \"end\"\n}\njob \"a\" { more = local.l15000 }\n")
	if got := more(t, must(t, b.String())); got != "end" {
		t.Errorf("%v", got)
	}
}

func TestSensitiveValueIsNamedAndCarriedAlong(t *testing.T) {
	g := only(t, must(t, `
variable "pw" {
  type      = object({ user = string, word = string })
  default   = { user = "u", word = "w" }
  sensitive = true
}
locals { copy = "x${var.pw.word}" }
job "a" {
  command = ["login", local.copy]
  env     = { WORD = base64encode(local.copy) }
  weight  = 5
  quiet   = nonsensitive(length(local.copy)) > 1
  more    = { deep = [sensitive("z")] }
}`))
	if diff := cmp.Diff([]string{"command", "env", "more"}, g.Secret); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]any{"login", "xw"}, g.Attrs["command"]); diff != "" {
		t.Error(diff)
	}
}

func TestIdentityMayHaveASensitiveNeighbour(t *testing.T) {
	g := only(t, must(t, `
variable "pw" { sensitive = true }
line "pw" {
  path  = "/etc/pw"
  line  = "pw=${var.pw}"
  match = "^pw="
}`, vars("pw=w")))
	if g.Key != "line:/etc/pw:^pw=" || len(g.Secret) != 1 || g.Secret[0] != "line" {
		t.Errorf("%s, secret %q", g.Key, g.Secret)
	}
}

// TestNoMessageShowsASensitiveValue puts a sensitive value wherever an expression may
// stand, in ways that fail.
func TestNoMessageShowsASensitiveValue(t *testing.T) {
	failing := []string{
		`%s`, `%s + 1`, `parseint(%s, 10)`, `tonumber(%s)`, `jsondecode(%s)`, `file(%s)`, `regex(%s, "x")`,
		`[for k in [%s] : tonumber(k)]`, `{ (%s) = [] }.x`, `templatefile("t.tftpl", { x = %s })`, `%s.name`,
		`base64decode(%s)`, `formatdate(%s, "x")`, `timeadd(%s, "1h")`, `cidrhost(%s, 1)`, `tolist(%s)`, `[0][%s]`,
		`{}[%s]`, `%s ? 1 : 2`, `{ for k in [%[1]s, %[1]s] : k => 1 }`, `true ? { (%s) = 1 } : { other = "x" }`, `lookup({}, %s)`, `index([], %s)`, `one([%s, 1])`, `format("%%d", %s)`,
		`try(parseint(%s, 10))`, `csvdecode("a\n${%s},1")`, `fileset(%s, "*")`, `upper(%s...)`, `-%s`, `!%s`,
	}
	places := []string{
		`job "a" { weight = %s }`, `job "a" { env = %s }`, `job "a" { name = %s }`, `file "/a" { source = %s }`,
		`file "/a" {` + "\ncontent = \"\"\nmode = %s\n}", "locals { l = %s }\njob \"a\" { command = local.l }",
		"policy { timeout = %s }", "policy {\nretry {\nmax_attempts = %s\n}\n}", `name = %s`,
		"line \"a\" {\npath = %s\nline = \"x\"\n}",
	}
	seen := 0
	for _, variable := range []string{"var.pw", "local.pw", "var.obj.pw", `"x${var.pw}"`} {
		for _, expr := range failing {
			for _, place := range places {
				text := "variable \"pw\" { sensitive = true }\nlocals { pw = \"${var.pw}y\" }\nvariable \"obj\" {\nsensitive = true\ntype = any\n}\n" +
					fmt.Sprintf(place, fmt.Sprintf(expr, variable))
				s, err := loadText(t, text, vars("pw=hunter2", `obj={ pw = "hunter2" }`))
				if err == nil {
					for _, g := range s.Glyphs() {
						if strings.Contains(string(g.Key), "hunter2") {
							t.Errorf("the key %s shows it:\n%s", g.Key, text)
						}
					}
					continue
				}
				seen++
				shown := err.Error()
				var mistakes *Diagnostics
				if errors.As(err, &mistakes) {
					var b strings.Builder
					if err := mistakes.Write(&b, 0, true); err != nil {
						t.Fatal(err)
					}
					shown += b.String()
				}
				if strings.Contains(shown, "hunter2") {
					t.Errorf("it is shown for\n%s\n\n%s", text, shown)
				}
			}
		}
	}
	if seen < 800 {
		t.Errorf("only %d of the expressions failed", seen)
	}
}

// TestVariableFileIsNotQuotedWhereAVariableIsSensitive has mistakes on the very line
// that holds the value.
func TestVariableFileIsNotQuotedWhereAVariableIsSensitive(t *testing.T) {
	for _, line := range []string{
		`pasword = "hunter2"`, `password = "hunter2`, "password = \"hunter2\"\npassword = \"hunter2\"", `password = hunter2`,
		`password = 1hunter2`, `password "hunter2" {}`, `password = ["hunter2"]`, "password = \"hunter2\xff\"",
	} {
		dir := write(t, map[string]string{
			"scroll.hcl":      "variable \"password\" {\nsensitive = true\ntype = string\n}\njob \"a\" { command = [var.password] }",
			"q.auto.vars.hcl": line,
		})
		_, err := loadDir(filepath.Join(dir, "scroll.hcl"))
		var mistakes *Diagnostics
		if !errors.As(err, &mistakes) {
			t.Fatalf("%s: %v", line, err)
		}
		var b strings.Builder
		if err := mistakes.Write(&b, 0, false); err != nil {
			t.Fatal(err)
		}
		if shown := b.String() + err.Error(); strings.Contains(shown, "hunter2") || !strings.Contains(shown, "q.auto.vars.hcl") && !strings.Contains(shown, "password") {
			t.Errorf("%s\n%s", line, shown)
		}
	}
}

func TestVariableThatHCLWouldChangeIsRefused(t *testing.T) {
	for _, value := range []string{"a\xffb", "cafe\u0301"} {
		for _, typ := range []string{"", "type = string\n", "type = list(string)\n"} {
			text := "variable \"v\" {\n" + typ + "}\njob \"a\" { more = var.v }"
			given := value
			if strings.Contains(typ, "list") {
				given = `["` + value + `"]`
			}
			for _, option := range []func(*Options){
				vars("v=" + given), func(o *Options) { o.Environ = []string{"GOLEM_VAR_v=" + given} },
			} {
				if got := mistake(t, text, option); !strings.Contains(got, "normal form C") {
					t.Errorf("%q: %s", value, got)
				}
			}
		}
	}
}
