package e2e

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// theSecret stands in every place where a scroll can have one, and nowhere else.
const theSecret = "s3cret-Value-9/+x"

// secretScroll has it in files, lines, blocks, entries, templates, for_each's values,
// inputs and outputs of modules, arguments of functions, and validation.
var secretScroll = map[string]string{
	"main.hcl": `
name = "web"
variable "password" {
  type      = string
  sensitive = true
  validation {
    condition     = length(var.password) > 3
    error_message = "${var.password} is too short."
  }
}
locals {
  users = { ann = var.password, bob = "${var.password}-bob" }
}
scroll "plain" {
  file "/etc/token" { content = "${var.password}\n" }
  file "/etc/template" { content = templatefile("t.tftpl", { p = var.password }) }
  link "/etc/linked" { target = "/srv/${var.password}" }
  file "/etc/hashed" { content = sha256(var.password) }
  file "user" {
    for_each = local.users
    path     = "/etc/user-${each.key}"
    content  = each.value
  }
  line "password" {
    path  = "/etc/shared"
    line  = "password=${var.password}"
    match = "^password="
  }
  region "block" {
    path    = "/etc/shared"
    content = "in a block: ${var.password}"
  }
  entry "json" {
    path  = "/etc/app.json"
    key   = "auth.password"
    value = var.password
  }
  entry "member" {
    path  = "/etc/app.yaml"
    key   = "tokens"
    value = [var.password, { deep = var.password }]
  }
  entry "env" {
    path   = "/etc/app.env"
    format = "env"
    key    = "PASSWORD"
    value  = var.password
  }
}
scroll "module" {
  source   = "./db"
  password = var.password
}
scroll "after" {
  file "/etc/url" { content = scroll.module.url }
}
`,
	"t.tftpl": "password is ${p}\n",
	"db/db.hcl": `
variable "password" {}
file "/etc/db" { content = "db ${var.password}\n" }
output "url" { value = "db://${var.password}@host" }
`,
}

// TestReport52SecretsAreInNothingThatGolemPrintsOrWrites runs every command on a scroll with a secret
// in every place, and looks for it, plain, encoded or hashed, in all that was printed and in
// every file that was written, but for the journal and the host itself.
func TestReport52SecretsAreInNothingThatGolemPrintsOrWrites(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	dir := filepath.Dir(s.root)
	scroll := filepath.Join(dir, "site")
	for name, text := range secretScroll {
		path := filepath.Join(scroll, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s.write(t, "etc/shared", "one\npassword=f0und-Value\ntwo\n")
	s.write(t, "etc/app.json", "{\n  \"auth\": {\"user\": \"x\"}\n}\n")
	common := []string{"--root", s.root, "--state", filepath.Join(dir, "journal", "planroom.db")}
	var said strings.Builder
	golem := func(code int, args ...string) {
		t.Helper()
		all := append(slices.Clone(common), args...)
		a := call{env: []string{"GOLEM_VAR_password=" + theSecret}, stdin: "var.password\nlocal.users\nnosuch(var.password)\n"}.golem(t, all...)
		if a.code != code {
			t.Errorf("golem %s exits %d, not %d:\n%s%s", strings.Join(args, " "), a.code, code, a.stdout, a.stderr)
		}
		said.WriteString("$ golem " + strings.Join(args, " ") + "\n" + a.stdout + a.stderr)
	}
	saved := filepath.Join(dir, "out", "web.plan")
	if err := os.Mkdir(filepath.Dir(saved), 0o700); err != nil {
		t.Fatal(err)
	}
	golem(0, "validate", scroll)
	golem(0, "validate", "--json", scroll)
	for _, more := range [][]string{{}, {"--json"}, {"--markdown"}, {"--drift"}, {"--drift", "--json"}, {"--out", saved}} {
		golem(0, append(append([]string{"plan"}, more...), scroll)...)
	}
	golem(0, "graph", scroll)
	golem(0, "graph", "--format", "dot", scroll)
	golem(1, "console", scroll)
	golem(0, "explain", "file")
	golem(0, "show", saved)
	golem(0, "show", "--json", saved)
	golem(0, "apply", "--auto-approve", saved)
	golem(5, "apply", "--auto-approve", saved)
	s.write(t, "etc/token", "h4nd-Value\n")
	s.write(t, "etc/shared", "one\npassword=h4nd-Value\ntwo\n")
	if err := os.Remove(filepath.Join(s.root, "etc/linked")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("h4nd-Value", filepath.Join(s.root, "etc/linked")); err != nil {
		t.Fatal(err)
	}
	golem(0, "plan", "--drift", scroll)
	golem(0, "plan", "--drift", "--json", scroll)
	golem(0, "apply", "--auto-approve", "--json", scroll)
	for _, more := range [][]string{{"list"}, {"list", "--json"}, {"check"}, {"export"}} {
		golem(0, append([]string{"state"}, more...)...)
	}
	for _, key := range []string{
		"file:/etc/token", "link:/etc/linked", "file:/etc/user-ann", "line:/etc/shared:^password=", "region:/etc/shared:block", "entry:/etc/app.json:auth.password",
		"entry:/etc/app.yaml:tokens", "entry:/etc/app.env:PASSWORD", "file:/etc/db", "file:/etc/url",
	} {
		golem(0, "state", "show", key)
		golem(0, "state", "show", "--json", key)
	}
	golem(0, "history")
	golem(0, "history", "--json")
	for _, more := range [][]string{{}, {"--json"}} {
		golem(0, append([]string{"show", "1"}, more...)...)
		golem(0, append([]string{"show", "2"}, more...)...)
		golem(0, append([]string{"kept", "list"}, more...)...)
	}
	for _, more := range [][]string{{"show", "--json", "1"}, {"show", "--diff", "1"}, {"show", "--diff", "--json", "1"}, {"restore", "--to", "/etc/back", "1"}} {
		golem(0, append([]string{"kept"}, more...)...)
	}
	for _, typed := range [][]string{{"state", "show", ""}, {"plan", "--target", ""}, {"kept", "show", ""}, {"show", ""}} {
		golem(0, append([]string{"complete", "--"}, append(slices.Clone(common), typed...)...)...)
	}
	golem(0, "plan", "--destroy", scroll)
	golem(0, "plan", "--destroy", "--json", scroll)
	golem(0, "destroy", "--auto-approve", scroll)
	golem(0, "show", "--json")

	for _, shown := range []string{"(secret)", "(sensitive value)", "file:/etc/user-bob", `"sensitive": true`} {
		if !strings.Contains(said.String(), shown) {
			t.Errorf("%s is nowhere in what golem printed", shown)
		}
	}
	for _, secret := range []string{theSecret, "f0und-Value", "h4nd-Value"} {
		hides(t, secret, said.String())
	}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasPrefix(path, filepath.Join(dir, "journal")) || strings.HasPrefix(path, s.root) {
			return err
		}
		data, err := os.ReadFile(path)
		hides(t, theSecret, string(data))
		return err
	})
	if err != nil {
		t.Error(err)
	}
	// What holds the secret is read by its owner alone.
	for _, file := range []string{"journal", "journal/planroom.db", "out/web.plan"} {
		st, err := os.Stat(filepath.Join(dir, file))
		if err != nil || st.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v, %v", file, st.Mode(), err)
		}
	}
}
