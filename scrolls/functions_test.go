package scrolls

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestFunctionsAnswerAsTerraformsDo gives each function something to do. An answer is
// written as JSON; a function that is missing here fails the test below.
var functionCases = []struct{ expr, want string }{
	{`abs(-2)`, `2`},
	{`urldecode("a%20b+c")`, `"a b c"`},
	{`yamldecode("a: [1, two]")`, `{"a":[1,"two"]}`},
	{`yamlencode({ a = [1, "two"], b = null })`, `"\"a\":\n- 1\n- \"two\"\n\"b\": null\n"`},
	{`issensitive(yamlencode({ a = sensitive(1) }))`, `true`},
	{`textencodebase64("\u00e9a", "UTF-16LE")`, `"6QBhAA=="`},
	{`textdecodebase64("6QBhAA==", "UTF-16LE")`, `"\u00e9a"`},
	{`uuidv5("dns", "www.terraform.io")`, `"a5008fae-b28c-5ba5-96cd-82b4c53552d6"`},
	{`uuidv5("6ba7b810-9dad-11d1-80b4-00c04fd430c8", "www.terraform.io")`, `"a5008fae-b28c-5ba5-96cd-82b4c53552d6"`},
	{`cidrsubnets("10.1.0.0/16", 4, 4, 8, 4)`, `["10.1.0.0/20","10.1.16.0/20","10.1.32.0/24","10.1.48.0/20"]`},
	{`cidrsubnets("fd00:fd12:3456:7890::/56", 16, 16, 16, 32)`, `["fd00:fd12:3456:7800::/72","fd00:fd12:3456:7800:100::/72","fd00:fd12:3456:7800:200::/72","fd00:fd12:3456:7800:300::/88"]`},
	{`cidrsubnets("255.255.255.0/24", 1, 1)`, `["255.255.255.0/25","255.255.255.128/25"]`},
	{`templatestring("$${a} and %%{ if b }yes%%{ endif }", { a = 1, b = true })`, `"1 and yes"`},
	{`ceil(1.2)`, `2`},
	{`floor(1.8)`, `1`},
	{`log(8, 2)`, `3`},
	{`max(1, 3, 2)`, `3`},
	{`min(2, 1)`, `1`},
	{`parseint("ff", 16)`, `255`},
	{`pow(2, 10)`, `1024`},
	{`signum(-5)`, `-1`},
	{`chomp("a\n\n")`, `"a"`},
	{`format("%s-%03d", "a", 7)`, `"a-007"`},
	{`formatlist("%s!", ["a", "b"])`, `["a!","b!"]`},
	{`indent(2, "a\nb")`, `"a\n  b"`},
	{`join(", ", ["a", "b"])`, `"a, b"`},
	{`lower("AB")`, `"ab"`},
	{`regex("[a-z]+", "12ab3")`, `"ab"`},
	{`regexall("[0-9]", "1a2")`, `["1","2"]`},
	{`replace("a.b.c", ".", "-")`, `"a-b-c"`},
	{`replace("aXbY", "/[A-Z]/", "_")`, `"a_b_"`},
	{`replace("a/b", "/", "-")`, `"a-b"`},
	{`split(",", "a,b")`, `["a","b"]`},
	{`strrev("abc")`, `"cba"`},
	{`substr("hello", 1, 3)`, `"ell"`},
	{`title("a b")`, `"A B"`},
	{`trim("--a--", "-")`, `"a"`},
	{`trimprefix("ab", "a")`, `"b"`},
	{`trimspace(" a \n")`, `"a"`},
	{`trimsuffix("ab", "b")`, `"a"`},
	{`upper("ab")`, `"AB"`},
	{`startswith("abc", "ab")`, `true`},
	{`startswith("a", "ab")`, `false`},
	{`endswith("abc", "bc")`, `true`},
	{`strcontains("abc", "b")`, `true`},
	{`strcontains("abc", "")`, `true`},
	{`strcontains("abc", "d")`, `false`},
	{`chunklist([1, 2, 3], 2)`, `[[1,2],[3]]`},
	{`coalesce(null, "a")`, `"a"`},
	{`coalesce("", null, "b", "c")`, `"b"`},
	{`coalesce("", 5)`, `"5"`},
	{`coalesce(null, 0)`, `0`},
	{`issensitive(coalesce(sensitive(""), "a"))`, `true`},
	{`lookup({ a = 1 }, "a")`, `1`},
	{`lookup({ a = 1 }, "b", null)`, `null`},
	{`lookup(tomap({ a = "x" }), "a")`, `"x"`},
	{`lookup(tomap({ a = "x" }), "b", "y")`, `"y"`},
	{`issensitive(lookup({ a = 1 }, sensitive("a")))`, `true`},
	{`coalescelist([], [1])`, `[1]`},
	{`compact(["a", "", "b"])`, `["a","b"]`},
	{`concat([1], [2])`, `[1,2]`},
	{`contains(["a"], "a")`, `true`},
	{`distinct([1, 1, 2])`, `[1,2]`},
	{`element(["a", "b"], 3)`, `"b"`},
	{`flatten([[1], [2, [3]]])`, `[1,2,3]`},
	{`keys({ b = 1, a = 2 })`, `["a","b"]`},
	{`length("héé")`, `3`},
	{`length({ a = 1 })`, `1`},
	{`length([1, 2])`, `2`},
	{`lookup({ a = 1 }, "b", 5)`, `5`},
	{`merge({ a = 1 }, { b = 2 })`, `{"a":1,"b":2}`},
	{`one([])`, `null`},
	{`one(["a"])`, `"a"`},
	{`range(3)`, `[0,1,2]`},
	{`reverse([1, 2])`, `[2,1]`},
	{`setintersection(["a", "b"], ["b"])`, `["b"]`},
	{`setproduct(["a"], ["b", "c"])`, `[["a","b"],["a","c"]]`},
	{`setsubtract(["a", "b"], ["b"])`, `["a"]`},
	{`setunion(["a"], ["b"])`, `["a","b"]`},
	{`slice([1, 2, 3], 1, 2)`, `[2]`},
	{`sort(["b", "a"])`, `["a","b"]`},
	{`sum([1, 2.5])`, `3.5`},
	{`values({ a = 1, b = 2 })`, `[1,2]`},
	{`zipmap(["a"], [1])`, `{"a":1}`},
	{`alltrue([true, true])`, `true`},
	{`alltrue([true, false])`, `false`},
	{`alltrue([])`, `true`},
	{`anytrue([false, true])`, `true`},
	{`anytrue([false])`, `false`},
	{`anytrue([])`, `false`},
	{`index(["a", "b"], "b")`, `1`},
	{`matchkeys(["a", "b"], ["x", "y"], ["y"])`, `["b"]`},
	{`matchkeys(["a"], ["x"], ["y"])`, `[]`},
	{`transpose({ a = ["x", "y"], b = ["y"] })`, `{"x":["a"],"y":["a","b"]}`},
	{`can(tonumber("x"))`, `false`},
	{`try(tonumber("x"), 5)`, `5`},
	{`tobool("true")`, `true`},
	{`tolist(["a"])`, `["a"]`},
	{`tomap({ a = 1 })`, `{"a":1}`},
	{`tonumber("5")`, `5`},
	{`toset(["b", "a", "b"])`, `["a","b"]`},
	{`tostring(5)`, `"5"`},
	{`csvdecode("a,b\n1,2\n")`, `[{"a":"1","b":"2"}]`},
	{`jsondecode("{\"a\":[1]}")`, `{"a":[1]}`},
	{`jsonencode({ a = "<b>" })`, `"{\"a\":\"\\u003cb\\u003e\"}"`},
	{`base64encode("a")`, `"YQ=="`},
	{`base64decode("YQ==")`, `"a"`},
	{`urlencode("a b&")`, `"a+b%26"`},
	{`base64sha256("a")`, `"ypeBEsobvcr6wjGzmiPcTaeG7/gUfE5yuYB3ha/uSLs="`},
	{`substr(base64sha512("a"), 0, 6)`, `"H0D8kt"`},
	{`md5("a")`, `"0cc175b9c0f1b6a831c399e269772661"`},
	{`sha1("a")`, `"86f7e437faa5a7fce15d1ddcb9eaeaea377667b8"`},
	{`sha256("a")`, `"ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"`},
	{`substr(sha512("a"), 0, 8)`, `"1f40fc92"`},
	{`formatdate("YYYY", "2026-01-02T03:04:05Z")`, `"2026"`},
	{`timeadd("2026-01-02T03:04:05Z", "1h")`, `"2026-01-02T04:04:05Z"`},
	{`timecmp("2026-01-02T03:04:05Z", "2026-01-02T04:04:05+01:00")`, `0`},
	{`timecmp("2026-01-02T03:04:05Z", "2027-01-02T03:04:05Z")`, `-1`},
	{`cidrhost("10.1.2.0/24", 5)`, `"10.1.2.5"`},
	{`cidrhost("10.1.2.0/24", -1)`, `"10.1.2.255"`},
	{`cidrhost("fd00::/64", 16)`, `"fd00::10"`},
	{`cidrnetmask("10.0.0.0/12")`, `"255.240.0.0"`},
	{`cidrnetmask("0.0.0.0/0")`, `"0.0.0.0"`},
	{`cidrsubnet("10.0.0.0/8", 8, 2)`, `"10.2.0.0/16"`},
	{`cidrsubnet("fd00::/48", 16, 162)`, `"fd00:0:0:a2::/64"`},
	{`basename("/a/b.c")`, `"b.c"`},
	{`dirname("/a/b.c")`, `"/a"`},
	{`nonsensitive(sensitive("a"))`, `"a"`},
	{`issensitive(sensitive("a"))`, `true`},
	{`issensitive("a")`, `false`},
	{`file("f.txt")`, `"text\n"`},
	{`filebase64("bytes")`, `"/wA="`},
	{`fileexists("f.txt")`, `true`},
	{`fileexists("none")`, `false`},
	{`fileset(".", "**/*.txt")`, `["f.txt","sub/g.txt"]`},
	{`fileset("sub", "*.none")`, `[]`},
	{`filemd5("f.txt")`, `"e1cbb0c3879af8347246f12c559a86b5"`},
	{`filesha1("f.txt") == sha1("text\n")`, `true`},
	{`filesha256("f.txt") == sha256("text\n")`, `true`},
	{`filesha512("f.txt") == sha512("text\n")`, `true`},
	{`filebase64sha256("f.txt") == base64sha256("text\n")`, `true`},
	{`filebase64sha512("f.txt") == base64sha512("text\n")`, `true`},
	{`templatefile("t.tftpl", { who = "you", list = [1, 2] })`, `"hi you: 1 2 .\n"`},
	{`templatefile("one.tftpl", { n = 5 })`, `"5"`},
}

var functionFiles = map[string]string{
	"f.txt": "text\n", "sub/g.txt": "", "bytes": "\xff\x00", "one.tftpl": "${n}",
	"t.tftpl":    "hi ${who}: %{ for x in list }${x} %{ endfor }.\n",
	"self.tftpl": `${templatefile("self.tftpl", {})}`, "null.tftpl": "${null}", "list.tftpl": "${[1]}", "latin.tftpl": "\xe9",
	"nfd": "cafe\u0301\n",
}

func TestFunctionsAnswerAsTerraformsDo(t *testing.T) {
	for _, c := range functionCases {
		files := map[string]string{"scroll.hcl": `job "a" { more = { it = ` + c.expr + ` } }`}
		for name, text := range functionFiles {
			files[name] = text
		}
		s, err := loadDir(write(t, files))
		if err != nil {
			t.Errorf("%s: %v", c.expr, err)
			continue
		}
		var want any
		dec := json.NewDecoder(strings.NewReader(c.want))
		dec.UseNumber()
		if err := dec.Decode(&want); err != nil {
			t.Fatalf("%s: %v", c.want, err)
		}
		if diff := cmp.Diff(want, only(t, s).Attrs["more"].(map[string]any)["it"]); diff != "" {
			t.Errorf("%s: %s", c.expr, diff)
		}
	}
}

func TestEveryFunctionIsTested(t *testing.T) {
	var all strings.Builder
	for _, c := range functionCases {
		all.WriteString(" " + c.expr)
	}
	for name := range (&loader{s: &Scroll{}}).functions() {
		if !strings.Contains(all.String(), " "+name+"(") && !strings.Contains(all.String(), "("+name+"(") {
			t.Errorf("%s has no case", name)
		}
	}
}

func TestNothingThatChangesByItselfIsAFunction(t *testing.T) {
	for _, name := range []string{"timestamp", "plantimestamp", "uuid", "bcrypt"} {
		if text := mistake(t, `job "a" { more = `+name+`() }`); !strings.Contains(text, "no function named") {
			t.Error(text)
		}
	}
}

// TestEveryFunctionOfTerraformsIsThereOrHasAReason has the list of terraform 1.14's functions.
func TestEveryFunctionOfTerraformsIsThereOrHasAReason(t *testing.T) {
	have := (&loader{s: &Scroll{}}).functions()
	for name := range strings.FieldsSeq(`
		abs abspath alltrue anytrue base64decode base64encode base64gunzip base64gzip base64sha256 base64sha512
		basename bcrypt can ceil chomp chunklist cidrhost cidrnetmask cidrsubnet cidrsubnets coalesce coalescelist
		compact concat contains csvdecode dirname distinct element endswith ephemeralasnull file filebase64
		filebase64sha256 filebase64sha512 fileexists filemd5 fileset filesha1 filesha256 filesha512 flatten floor
		format formatdate formatlist indent index issensitive join jsondecode jsonencode keys length list log
		lookup lower map matchkeys max md5 merge min nonsensitive one parseint pathexpand plantimestamp pow range
		regex regexall replace reverse rsadecrypt sensitive setintersection setproduct setsubtract setunion sha1
		sha256 sha512 signum slice sort split startswith strcontains strrev substr sum templatefile templatestring
		textdecodebase64 textencodebase64 timeadd timecmp timestamp title tobool tolist tomap tonumber toset
		tostring transpose trim trimprefix trimspace trimsuffix try type upper urlencode uuid uuidv5 values
		yamldecode yamlencode zipmap`) {
		_, there := have[name]
		reason := otherFunctions[name]
		if there == (reason != "") {
			t.Errorf("%s is there (%t), and why not is %q", name, there, reason)
		}
		if !there {
			said := strings.Join(strings.Fields(mistake(t, `job "a" { more = `+name+`("x") }`)), " ")
			if !strings.Contains(said, reason) {
				t.Errorf("%s: %q does not say why", name, said)
			}
		}
	}
}

func TestFunctionsRefuseWhatTheyCannotAnswer(t *testing.T) {
	for expr, want := range map[string]string{
		`file("bytes")`:                        "source argument",
		`file("nfd")`:                          "normal form C",
		`file("sub")`:                          "not a regular file",
		`file("none")`:                         "no such file",
		`file("huge")`:                         "larger than 64 MiB",
		`fileset("none", "*")`:                 "not a directory",
		`fileset(".", "[")`:                    "not a pattern",
		`base64decode("/wA=")`:                 "content_base64",
		`base64decode("?")`:                    "not base64",
		`templatefile("self.tftpl", {})`:       `no function named "templatefile"`,
		`templatefile("null.tftpl", {})`:       "null",
		`templatefile("list.tftpl", {})`:       "not text",
		`templatefile("latin.tftpl", {})`:      "not UTF-8",
		`templatefile("t.tftpl", { who = 1 })`: "t.tftpl:1: Unknown variable",
		`templatefile("t.tftpl", { wha = 1 })`: `Did you mean "wha"?`,
		`templatefile("t.tftpl", "x")`:         "a map or an object",
		`index(["a"], "b")`:                    "not in the list",
		`index({}, "b")`:                       "not a list",
		`matchkeys([1], [], [])`:               "another length",
		`one([1, 2])`:                          "more than one",
		`coalesce("", null)`:                   "every value is null or empty",
		`lookup({ a = 1 }, "b")`:               "no such key",
		`lookup({ a = 1 }, "b", 1, 2)`:         "one default at most",
		`lookup([1], "b")`:                     "not a map",
		`indent(1000000000, "a\nb")`:           "from 0 to 1000",
		`indent(-1, "a\nb")`:                   "from 0 to 1000",
		`log(-1, 2)`:                           "has no answer",
		`sum([1, null])`:                       "has no answer",
		`sum([])`:                              "it is empty. Where it may be, add a 0",
		`transpose({ a = null })`:              "has no answer",
		`setproduct(range(1000), range(1000))`: "more than 100000 combinations",
		`one("a")`:                             "not a list",
		`length(5)`:                            "not a string",
		`timecmp("x", "y")`:                    "not a time",
		`cidrhost("10.0.0.0/24", 256)`:         "no address of this number",
		`cidrhost("10.0.0.0", 1)`:              "not a network",
		`cidrhost("10.0.0.0/24", 0.5)`:         "not a whole number",
		`cidrnetmask("fd00::/64")`:             "IPv4",
		`cidrsubnet("10.0.0.0/24", 9, 0)`:      "cut so small",
		`cidrsubnet("10.0.0.0/24", 2, 4)`:      "no subnet of this number",
	} {
		files := map[string]string{"scroll.hcl": `job "a" { more = ` + expr + ` }`, "huge": ""}
		for name, text := range functionFiles {
			files[name] = text
		}
		dir := write(t, files)
		if err := os.Truncate(dir+"/huge", 65<<20); err != nil {
			t.Fatal(err)
		}
		if s, err := loadDir(dir); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "?.") {
			t.Errorf("%s: %v, %v; want %q", expr, s, err, want)
		}
	}
}
