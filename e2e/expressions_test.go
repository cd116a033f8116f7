package e2e

import (
	"strings"
	"testing"
)

// expressions are answers of terraform 1.11's console, with golem's spelling of values: keys
// without quotes, and literal "${" as HCL has it.
var expressions = [][2]string{
	{`1 + 2 * 3 - 4 / 2`, `5`},
	{`7 % 3`, `1`},
	{`-(3) < 2 && !(1 == 2) || false`, `true`},
	{`1 != "1"`, `true`},
	{`true ? "a" : "b"`, `"a"`},
	{`[for i, x in ["a", "b", "c"] : "${i}${x}" if x != "b"]`, `["0a", "2c"]`},
	{`{for k, v in { a = 1, b = 2 } : upper(k) => v * 2}`, `{ A = 2 B = 4 }`},
	{`{for x in ["ab", "ac", "bd"] : substr(x, 0, 1) => x...}`, `{ a = ["ab", "ac"] b = ["bd"] }`},
	{`[{ n = 1 }, { n = 2 }][*].n`, `[1, 2]`},
	{`[{ n = [1] }, { n = [2] }].*.n`, `[[1], [2]]`},
	{`"%{ if 1 < 2 }yes%{ else }no%{ endif }"`, `"yes"`},
	{`"%{ for x in ["a", "b"] }${x},%{ endfor }"`, `"a,b,"`},
	{`"a ${~ "b" ~} c"`, `"abc"`},
	{`"$${literal} %%{literal}"`, `"$${literal} %%{literal}"`},
	{`"\u00e9\t\"\\"`, `"é\t\"\\"`},
	{`{ "a.b" = 1, c : 2 }["a.b"]`, `1`},
	{`[1, 2, 3][1]`, `2`},
	{`{ a = { b = [1, 2] } }.a.b[1]`, `2`},
	{`toset(["b", "a", "b"])`, `toset(["a", "b"])`},
	{`null`, `null`},
	{`[1, "a", true]`, `[1, "a", true]`},
	{`{ (upper("k")) = 1 }`, `{ K = 1 }`},
	{`1e3 + 0.5`, `1000.5`},
	{`null == null`, `true`},
	{`[1, 2] == [1, 2]`, `true`},
	{"<<-EOT\n    a\n     b ${1 + 1}\n    EOT\n", `"a\n b 2\n"`},
	{"[\n  1, # one\n  2, // two\n  /* three */ 3\n]", `[1, 2, 3]`},
	{"merge(\n  { a = 1 },\n  [{ b = 2 }, { c = 3 }]...\n)", `{ a = 1 b = 2 c = 3 }`},
}

// TestExpressionsAnswerAsTerraformsDo asks them all of one console, some over several lines.
func TestExpressionsAnswerAsTerraformsDo(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	var typed, want strings.Builder
	for _, e := range expressions {
		typed.WriteString(e[0] + "\n")
		want.WriteString(e[1] + " ")
	}
	a := call{stdin: typed.String()}.must(t, 0, "console", "--root", s.root)
	if have := strings.Join(strings.Fields(a.stdout), " "); have != strings.TrimSpace(want.String()) {
		t.Errorf("it answers\n%s\nwant\n%s", have, want.String())
	}
}
