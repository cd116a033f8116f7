package scrolls

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func mustDir(t testing.TB, files map[string]string, options ...func(*Options)) *Scroll {
	t.Helper()
	s, err := loadDir(write(t, files), options...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// threeDeep is a scroll with modules in modules, one of them under for_each, whose outputs
// are used by what is written before them.
var threeDeep = map[string]string{
	"main.hcl": `
locals {
  banner = "db at ${scroll.db.endpoint}, web at ${scroll.web["a"].url}"
}
scroll "base" {
  file "/etc/motd" { content = local.banner }
}
scroll "web" {
  for_each = { a = 80, b = 81 }
  source   = "./modules/web"
  port     = each.value
  name     = each.key
  db       = scroll.db.endpoint
}
scroll "more" {
  scroll "db" {
    source = "./modules/db"
    size   = 9
    name   = "second"
  }
}
scroll "db" {
  source = "./modules/db"
  size   = length(scroll.more.db.users)
}
file_of_outputs {
}`,
	"modules/web/main.hcl": `
variable "port" { type = number }
variable "name" { type = string }
variable "db" { type = string }
variable "options" {
  type    = object({ tls = optional(bool, false), names = optional(list(string), ["x"]) })
  default = {}
}
scroll "files" {
  file "conf" {
    path    = "/etc/web/${var.name}.conf"
    content = templatefile("conf.tftpl", { port = var.port, db = var.db, o = var.options })
  }
  file "static" {
    path   = "/etc/web/${var.name}.txt"
    source = "static.txt"
  }
}
scroll "log" {
  source = "../log"
  name   = "web-${var.name}"
}
output "url" { value = "http://${var.name}:${var.port}" }
`,
	"modules/web/conf.tftpl": "${port} ${db} ${o.tls} ${join(\",\", o.names)}",
	"modules/web/static.txt": "static of web",
	"modules/log/main.hcl": `
name = "log"
variable "name" {}
variable "level" {
  type     = string
  default  = "info"
  nullable = false
}
file "log" {
  path    = "/etc/log/${var.name}"
  content = "${var.level} ${file("${path.root}/shared.txt")} ${file("${path.module}/own.txt")}"
}
job "rotate" {
  command = ["rotate", var.name]
}
`,
	"modules/log/own.txt": "own",
	"shared.txt":          "shared",
	"modules/db/main.hcl": `
variable "size" { type = number }
variable "name" { default = "first" }
locals {
  users = [for i in range(var.size): "u${i}"]
}
file "db" {
  path    = "/etc/db/${var.name}"
  content = join(" ", local.users)
}
output "endpoint" {
  value       = "${var.name}:${var.size}"
  description = "where it listens"
}
output "users" { value = local.users }
scroll "log" {
  source = "../log"
  name   = "db-${var.name}"
  level  = null
}
`,
}

// modulesThreeDeep is threeDeep as it is when it holds no mistake: a module's root is
// either a leaf or holds scrolls.
func modulesThreeDeep() map[string]string {
	files := map[string]string{}
	for name, text := range threeDeep {
		files[name] = strings.Replace(text, "file_of_outputs {\n}", "", 1)
	}
	files["modules/db/main.hcl"] = strings.Replace(strings.Replace(files["modules/db/main.hcl"], `file "db" {`, `scroll "conf" {
file "db" {`, 1), "local.users)\n}", "local.users)\n}\n}", 1)
	return files
}

func TestModulesThreeDeepGiveWhatTheirAuthorWouldExpect(t *testing.T) {
	s := mustDir(t, modulesThreeDeep())
	var got []string
	for _, g := range s.Glyphs() {
		what := g.Attrs["content"]
		if ref, ok := g.Attrs["source"].(map[string]any); ok {
			what = ref["size"]
		}
		got = append(got, fmt.Sprintf("%s %s %v", g.Leaf, g.Key, what))
	}
	want := []string{
		"base file:/etc/motd db at first:9, web at http://a:80",
		`web["a"]/files file:/etc/web/a.conf 80 first:9 false x`,
		`web["a"]/files file:/etc/web/a.txt 13`,
		`web["a"]/log file:/etc/log/web-a info shared own`,
		`web["a"]/log job:web["a"]/log/rotate <nil>`,
		`web["b"]/files file:/etc/web/b.conf 81 first:9 false x`,
		`web["b"]/files file:/etc/web/b.txt 13`,
		`web["b"]/log file:/etc/log/web-b info shared own`,
		`web["b"]/log job:web["b"]/log/rotate <nil>`,
		"more/db/conf file:/etc/db/second u0 u1 u2 u3 u4 u5 u6 u7 u8",
		"more/db/log file:/etc/log/db-second info shared own",
		"more/db/log job:more/db/log/rotate <nil>",
		"db/conf file:/etc/db/first u0 u1 u2 u3 u4 u5 u6 u7 u8",
		"db/log file:/etc/log/db-first info shared own",
		"db/log job:db/log/rotate <nil>",
	}
	for i, key := range want {
		want[i] = strings.NewReplacer(`job:web["a"]`, `job:web%5B"a"%5D`, `job:web["b"]`, `job:web%5B"b"%5D`).Replace(key)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if s.Name != "host" {
		t.Errorf("the lineage is %q: a module's own name says nothing", s.Name)
	}
}

func TestGlyphMovedIntoAModuleIsTheSame(t *testing.T) {
	flat := must(t, `file "/etc/log/x" { content = "info shared own" }`)
	files := modulesThreeDeep()
	files["main.hcl"] = `scroll "any" {
  source = "./modules/log"
  name   = "x"
}`
	deep := mustDir(t, files)
	kind := testKinds()[0]
	a, b := flat.Glyphs()[0], deep.Glyphs()[0]
	if a.Key != b.Key || CID(kind, a) != CID(kind, b) {
		t.Errorf("%s and %s are not the same", a.Key, b.Key)
	}
	x, err := a.MarshalStored()
	if err != nil {
		t.Fatal(err)
	}
	y, err := b.MarshalStored()
	if err != nil || string(x) != string(y) {
		t.Errorf("%s is stored, and %s (%v)", x, y, err)
	}
}

func TestSensitiveInputAndOutputStaySensitive(t *testing.T) {
	s := mustDir(t, map[string]string{
		"main.hcl": `
variable "password" { sensitive = true }
scroll "db" {
  source   = "./db"
  password = var.password
}
scroll "web" {
  file "/url" { content = scroll.db.url }
  file "/token" { content = scroll.db.token }
  file "/port" { content = scroll.db.port }
  file "each" {
    for_each = { a = var.password }
    path     = "/${each.key}"
    content  = each.value
  }
}`,
		"db/db.hcl": `
variable "password" {}
file "/db" { content = var.password }
output "url" { value = "db://${var.password}" }
output "token" {
  value     = "t"
  sensitive = true
}
output "port" { value = 1 }`,
	}, vars("password=hunter2"))
	secret := map[string]bool{}
	for _, g := range s.Glyphs() {
		secret[string(g.Key)] = slices.Contains(g.Secret, "content")
	}
	want := map[string]bool{"file:/db": true, "file:/url": true, "file:/token": true, "file:/port": false, "file:/a": true}
	if diff := cmp.Diff(want, secret); diff != "" {
		t.Error(diff)
	}
}

func TestDigestIsOfModulesToo(t *testing.T) {
	files := modulesThreeDeep()
	was := mustDir(t, files).Digest
	for _, name := range []string{"modules/web/static.txt", "modules/log/own.txt", "modules/db/main.hcl", "shared.txt"} {
		changed := modulesThreeDeep()
		changed[name] += "\n"
		if mustDir(t, changed).Digest == was {
			t.Errorf("the digest is the same with another %s", name)
		}
	}
	if mustDir(t, files).Digest != was {
		t.Error("the digest of the same files differs")
	}
	// Two modules that change their files with each other are another scroll.
	one := map[string]string{
		"main.hcl": "scroll \"a\" {\n  source = \"./a\"\n}\nscroll \"b\" {\n  source = \"./b\"\n}",
		"a/x.hcl":  `file "/a" { content = file("t") }`, "b/x.hcl": `file "/b" { content = file("t") }`, "a/t": "1", "b/t": "2",
	}
	first := mustDir(t, one).Digest
	one["a/t"], one["b/t"] = "2", "1"
	if mustDir(t, one).Digest == first {
		t.Error("the digest does not say which module a file is read by")
	}
}

func TestModuleBehindALinkIsFoundAndItsCircleToo(t *testing.T) {
	dir := write(t, map[string]string{
		"main.hcl":   "scroll \"a\" {\n  source = \"./link\"\n}",
		"real/x.hcl": `file "/a" { content = file("t") }`, "real/t": "here",
	})
	if err := os.Symlink("real", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	s, err := loadDir(dir)
	if err != nil || s.Glyphs()[0].Attrs["content"] != "here" {
		t.Fatal(s, err)
	}
	if err := os.Symlink("..", filepath.Join(dir, "real", "up")); err != nil {
		t.Fatal(err)
	}
	text := "scroll \"a\" {\n  source = \"./up\"\n}"
	if err := os.WriteFile(filepath.Join(dir, "real", "x.hcl"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := loadDir(dir); err == nil || !strings.Contains(err.Error(), "circle") {
		t.Errorf("%v", err)
	}
}

func TestMetaArgumentsAreStoredAndNoPartOfTheContentID(t *testing.T) {
	plain := must(t, `file "/a" { content = "x" }`).Glyphs()[0]
	meant := must(t, `
file "/a" {
  content      = "x"
  protect      = true
  on_undeclare = "leave"
}`).Glyphs()[0]
	if kind := testKinds()[0]; CID(kind, plain) != CID(kind, meant) {
		t.Error("the content id says what is done on undeclare")
	}
	data, err := meant.MarshalStored()
	if err != nil {
		t.Fatal(err)
	}
	back, err := UnmarshalStored(data)
	if err != nil || !back.Protect || back.OnUndeclare != "leave" {
		t.Errorf("%s comes back as %+v (%v)", data, back, err)
	}
	if data, err = plain.MarshalStored(); err != nil || strings.Contains(string(data), "protect") {
		t.Errorf("%s (%v)", data, err)
	}
}

func TestMovedFromNamesAnEarlierKey(t *testing.T) {
	s := must(t, `
job "new" {
  moved_from = "job:old"
}`)
	if got := s.Glyphs()[0].MovedFrom; got != "job:old" {
		t.Errorf("moved from %q", got)
	}
	mistake(t, `
job "new" {
  moved_from = "file:/old"
}`)
}

func TestNullInputOfANonNullableVariableIsItsDefault(t *testing.T) {
	text := `
variable "level" {
  default  = "info"
  nullable = false
}
file "/a" { content = var.level }`
	dir := write(t, map[string]string{"a.hcl": text, "x.auto.vars.hcl": "level = null"})
	s, err := loadDir(dir)
	if err != nil || s.Glyphs()[0].Attrs["content"] != "info" {
		t.Fatal(s, err)
	}
}

func TestValidationSeesOtherVariables(t *testing.T) {
	text := `
variable "low" { default = 3 }
variable "high" {
  type = number
  validation {
    condition     = var.high > var.low
    error_message = "high (${var.high}) is not above low (${var.low})."
  }
}
file "/a" { content = var.high }`
	must(t, text, vars("high=4"))
	if got := mistake(t, text, vars("high=2")); !strings.Contains(got, "high (2) is not above low (3).") {
		t.Error(got)
	}
}

// manyGlyphs is a scroll whose modules and for_each make n glyphs.
func manyGlyphs(n int) map[string]string {
	return map[string]string{
		"main.hcl": fmt.Sprintf(`
locals {
  names = { for i in range(%d) : format("n%%05d", i) => i }
}
scroll "all" {
  for_each = { for i in range(10) : format("m%%d", i) => i }
  source   = "./many"
  names    = local.names
  dir      = "/srv/${each.key}"
}`, n/10),
		"many/many.hcl": `
variable "names" { type = map(number) }
variable "dir" { type = string }
file "one" {
  for_each = var.names
  path     = "${var.dir}/${each.key}"
  content  = "number ${each.value} of ${local.count}\n"
}
locals {
  count = length(var.names) # in a glyph it would look at every name for each of them
}
output "count" { value = length(var.names) }`,
	}
}

// BenchmarkModules10k loads 10,000 glyphs from modules and for_each, and says how many times
// the work of reading as much plain HCL that is.
func BenchmarkModules10k(b *testing.B) {
	for _, n := range []int{2_500, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			dir := write(b, manyGlyphs(n))
			for b.Loop() {
				s, err := loadDir(dir)
				if err != nil || len(s.Glyphs()) != n {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("plain-%d", n), func(b *testing.B) {
			var text strings.Builder
			for i := range n {
				fmt.Fprintf(&text, "file \"/srv/%05d\" {\n  content = \"number %d\\n\"\n}\n", i, i)
			}
			src := []byte(text.String())
			for b.Loop() {
				if _, diags := parseFile(src, "x.hcl"); diags.HasErrors() {
					b.Fatal(diags)
				}
			}
		})
	}
}

func TestManyGlyphsOfModulesAndForEach(t *testing.T) {
	s := mustDir(t, manyGlyphs(2_000))
	if n := len(s.Glyphs()); n != 2_000 {
		t.Errorf("%d glyphs", n)
	}
	last := s.Glyphs()[1_999]
	if last.Key != "file:/srv/m9/n00199" || last.Leaf != `all["m9"]` {
		t.Errorf("%s in %s", last.Key, last.Leaf)
	}
	if _, err := json.Marshal(last.Attrs); err != nil {
		t.Error(err)
	}
}
