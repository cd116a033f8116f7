package scrolls

import (
	"strings"
	"testing"
)

func TestDeepNestingIsRefusedAndDeepTextIsNot(t *testing.T) {
	for _, deep := range []string{
		strings.Repeat("(", 100_000) + strings.Repeat(")", 100_000),
		strings.Repeat("[", 2_000) + strings.Repeat("]", 2_000),
		strings.Repeat(`"${`, 2_000) + "1" + strings.Repeat(`}"`, 2_000),
	} {
		if text := mistake(t, `job "a" { more = `+deep+` }`); !strings.Contains(text, "nested more than 500 deep") {
			t.Errorf("%.80s", text)
		}
	}
	s := must(t, "# "+strings.Repeat("-", 20_000)+"\nfile \"/a\" {\n  content = \""+strings.Repeat(":(", 2000)+"\"\n}")
	if got := only(t, s).Attrs["content"]; got != strings.Repeat(":(", 2000) {
		t.Errorf("content %.20v", got)
	}
}

// TestEndlessExpressionIsRefusedAndAnEndlessListIsNot has expressions that are not
// nested as they are written, but are as they are evaluated: a stack that is used up
// cannot be caught.
func TestEndlessExpressionIsRefusedAndAnEndlessListIsNot(t *testing.T) {
	const n = 30_000
	for _, endless := range []string{
		"1" + strings.Repeat("+1", n), "true" + strings.Repeat(" && true", n), strings.Repeat("!", n) + "true",
		"[\n" + strings.Repeat("!\n", n) + "true]", "(\n" + strings.Repeat("true ? 1 :\n", n) + "1)",
		"[1]" + strings.Repeat("[0]", n), "1" + strings.Repeat("+max(1, 1)", n),
		`"` + strings.Repeat("%{if true}", n) + strings.Repeat("%{endif}", n) + `"`,
		"<<EOT\n" + strings.Repeat("%{for x in []~}\n", n) + strings.Repeat("%{endfor~}\n", n) + "EOT\n",
	} {
		text := "job \"a\" {\n more = " + endless + "\n}"
		if got := mistake(t, text); !strings.Contains(got, "more than 10000 operators") {
			t.Errorf("%.80s: %.80s", endless, got)
		}
		if _, err := Format([]byte(text), "a.hcl"); err == nil || !strings.Contains(err.Error(), "operators") {
			t.Errorf("format %.80s: %v", endless, err)
		}
	}
	long := "[" + strings.Repeat("1+1, -1,\n", 20_000) + "{}]"
	if got := len(more(t, must(t, `job "a" { more = `+long+` }`)).([]any)); got != 40_001 {
		t.Errorf("%d elements", got)
	}
	ifs := `"` + strings.Repeat("%{if true}x%{endif}", 20_000) + `"`
	if got := more(t, must(t, `job "a" { more = `+ifs+` }`)); got != strings.Repeat("x", 20_000) {
		t.Errorf("%.20v", got)
	}
}

func TestVariableAndTemplateAreNotDeepEither(t *testing.T) {
	deep := strings.Repeat("[", 60_000)
	list := "variable \"v\" { type = list(string) }\njob \"a\" { more = var.v }"
	if got := mistake(t, list, vars("v="+deep)); !strings.Contains(got, "nested more than 500 deep") || len(got) > 1000 {
		t.Errorf("%.200s", got)
	}
	_, err := loadDir(write(t, map[string]string{
		"a.hcl": `job "a" { more = templatefile("t", {}) }`, "t": strings.Repeat("%{if true}", 30_000),
	}))
	if err == nil || !strings.Contains(err.Error(), "more than 10000 operators") {
		t.Errorf("%.200v", err)
	}
}
