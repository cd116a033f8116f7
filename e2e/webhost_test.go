package e2e

import (
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// webHost is a scroll of some 500 lines as a web host has it: modules three deep, maps of
// objects, templates. Its files are by name.
func webHost(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	top := os.DirFS("testdata/webhost")
	err := fs.WalkDir(top, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(top, name)
		files[name] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// webHostSecret is not to be found in anything that golem prints.
const webHostSecret = "hunter2 & co"

// newWebHost is a host as it is before the scroll.
func newWebHost(t *testing.T) *box {
	b := newBox(t)
	b.env = []string{"GOLEM_VAR_database_password=" + webHostSecret}
	b.write("tree/etc/motd", "welcome\n")
	b.write("tree/etc/hosts", "127.0.0.1 localhost\n::1 localhost")
	b.write("tree/etc/ssh/sshd_config", "Port 22\n#PermitRootLogin prohibit-password\nX11Forwarding yes\nSubsystem sftp internal-sftp\n")
	b.write("tree/etc/nginx/nginx.conf", "worker_processes 1;\n")
	b.write("tree/etc/default/collector", "#ENABLED=0\r\nARGS=\r\n")
	b.must(os.MkdirAll(filepath.Join(b.tree, "etc/nginx/sites-enabled"), 0o755))
	b.must(os.Symlink("../sites-available/debian", filepath.Join(b.tree, "etc/nginx/sites-enabled/default")))
	return b
}

// in is the same box in a subtest.
func (b *box) in(t *testing.T) *box {
	inner := *b
	inner.t = t
	return &inner
}

// lay puts the scroll's files in the place of those that were there.
func (b *box) lay(files map[string]string) string {
	b.t.Helper()
	dir := filepath.Join(b.dir, "scroll")
	b.must(os.RemoveAll(dir))
	for name, text := range files {
		b.write(filepath.Join("scroll", name), text)
	}
	return dir
}

// foundOwner is who owned a file that was found, and so who runs the tests.
var foundOwner = regexp.MustCompile(`(0644) \d+:\d+`)

// planned is what plan --json says of a scroll.
type planned struct {
	Changes []json.RawMessage `json:"changes"`
	Updates int               `json:"updates"`
	Summary map[string]int    `json:"summary"`
}

func (b *box) planned(args ...string) planned {
	b.t.Helper()
	var p planned
	a := b.want(0, append([]string{"plan", "--json"}, args...)...)
	b.must(json.Unmarshal([]byte(a.stdout), &p))
	return p
}

func TestScrollOfAWebHostGivesThePlanThatItsAuthorExpects(t *testing.T) {
	b := newWebHost(t)
	before := b.print()
	dir := b.lay(webHost(t))

	text := foundOwner.ReplaceAllString(b.want(0, "plan", dir).stdout, "$1 me:me")
	const golden = "testdata/webhost.plan"
	if *update {
		b.must(os.WriteFile(golden, []byte(text), 0o644))
	}
	want, err := os.ReadFile(golden)
	b.must(err)
	if diff := cmp.Diff(string(want), text); diff != "" {
		t.Errorf("the plan has changed (-want +got):\n%s", diff)
	}
	summary := map[string]int{"install": 39, "replace": 0, "repair": 0, "remove": 0, "unchanged": 0}
	if diff := cmp.Diff(summary, b.planned(dir).Summary); diff != "" {
		t.Error(diff)
	}

	applied := b.want(0, "apply", "--auto-approve", dir)
	says(t, b.read("tree/etc/sites/shop.env"), "DATABASE_URL=postgres://web:hunter2+%26+co@db.internal:5432/shop\n")
	says(t, b.read("tree/etc/default/collector"), "ENABLED=1\r\nARGS=\r\n")
	summary["install"], summary["unchanged"] = 0, 39
	if diff := cmp.Diff(summary, b.planned(dir).Summary); diff != "" {
		t.Error(diff)
	}

	refused := b.want(1, "destroy", "--auto-approve", dir)
	says(t, refused.stderr, "/etc/issue.net")
	released := webHost(t)
	swap(t, released, "main.hcl", "      protect = true\n", "")
	swap(t, released, "main.hcl", "    on_undeclare = \"leave\"\n", "")
	b.want(0, "apply", "--auto-approve", b.lay(released))
	destroyed := b.want(0, "destroy", "--auto-approve", dir)
	b.same("after destroy", before)

	for _, said := range []string{text, applied.stdout, refused.stderr, destroyed.stdout} {
		if strings.Contains(said, "hunter2") {
			t.Errorf("the password is shown:\n%s", said)
		}
	}
}

// swap puts a text in the place of another in one of a scroll's files, where it stands once.
func swap(t *testing.T, files map[string]string, name, old, with string) {
	t.Helper()
	if n := strings.Count(files[name], old); n != 1 {
		t.Fatalf("%s holds %q %d times", name, old, n)
	}
	files[name] = strings.Replace(files[name], old, with, 1)
}

// topBlock is a block that begins a line, with the comments and blank lines before it.
var topBlock = regexp.MustCompile(`(?m)(?:^(?:#.*)?\n)*^\w+(?: "[^"]*")? \{(?:.*\}\n|\n(?:(?: .*)?\n)*?^\}\n)`)

// webHostAsWell are ways to write the same scroll: with what differs outside of the glyphs,
// and how many glyphs the journal is to know under another leaf, policy or place then.
var webHostAsWell = map[string]func(t *testing.T, files map[string]string){
	"labels renamed": func(_ *testing.T, files map[string]string) {
		rename := strings.NewReplacer(
			`scroll "base"`, `scroll "system"`, `scroll "login"`, `scroll "people"`, `scroll "sites"`, `scroll "tenants"`,
			`scroll.sites`, `scroll.tenants`, `scroll "operations"`, `scroll "ops"`, `scroll.operations`, `scroll.ops`,
			`entry "sshd"`, `entry "sshd_config"`, `file "sudo"`, `file "sudoers"`, `line "peer"`, `line "neighbour"`,
			`line "nofile"`, `line "files"`, `file "agent"`, `file "agent_settings"`, `scroll "vhost"`, `scroll "front"`,
			`scroll.vhost`, `scroll.front`, `scroll "headers"`, `scroll "extra"`, `scroll.headers`, `scroll.extra`,
			`directory "root"`, `directory "home"`, `entry "limits"`, `entry "bounds"`, `file "job"`, `file "timer"`,
		)
		for name, text := range files {
			if strings.HasSuffix(name, "main.hcl") {
				files[name] = rename.Replace(text)
			}
		}
	},
	"leaves regrouped": func(t *testing.T, files map[string]string) {
		// names and kernel become one leaf, the sudoers files one of their own.
		swap(t, files, "main.hcl", "  }\n\n  scroll \"kernel\" {\n", "\n")
		main := files["main.hcl"]
		from := strings.Index(main, "    file \"sudo\" {")
		to := from + strings.Index(main[from:], "\n    }\n") + len("\n    }\n")
		sudo := main[from:to]
		swap(t, files, "main.hcl", sudo, "")
		swap(t, files, "main.hcl", "  scroll \"names\" {\n", "  scroll \"sudo\" {\n"+sudo+"  }\n\n  scroll \"names\" {\n")
	},
	"glyphs moved into a module": func(t *testing.T, files map[string]string) {
		main := files["main.hcl"]
		from := strings.Index(main, "  scroll \"names\" {\n")
		to := from + strings.Index(main[from:], "\n  }\n") + len("\n  }\n")
		inner := strings.TrimSuffix(strings.TrimPrefix(main[from:to], "  scroll \"names\" {\n"), "  }\n")
		files["modules/names/main.hcl"] = "variable \"peers\" { type = map(string) }\nvariable \"names\" { type = map(string) }\n" +
			strings.ReplaceAll(inner, "local.names", "var.names")
		swap(t, files, "main.hcl", main[from:to], "  scroll \"names\" {\n    source = \"./modules/names\"\n    peers = var.peers\n    names = local.names\n  }\n")
	},
	"a module written out": func(t *testing.T, files map[string]string) {
		swap(t, files, "modules/vhost/main.hcl", files["modules/vhost/main.hcl"][strings.Index(files["modules/vhost/main.hcl"], "scroll \"headers\""):strings.Index(files["modules/vhost/main.hcl"], "output \"path\"")], `
scroll "headers" {
  file "headers" {
    path = local.include
    content = join("", [for name, value in merge(
      { X-Content-Type-Options = "nosniff", Referrer-Policy = "same-origin" },
      var.tls.hsts_days > 0 ? { Strict-Transport-Security = "max-age=${var.tls.hsts_days * 86400}" } : {},
    ) : "add_header ${name} \"${value}\" always;\n"])
  }
}

locals {
  include = "/etc/nginx/headers/${var.name}.conf"
}
`)
		swap(t, files, "modules/vhost/main.hcl", "scroll.headers.include", "local.include")
		delete(files, "modules/headers/main.hcl")
	},
	"split into files": func(t *testing.T, files map[string]string) {
		name, rest, _ := strings.Cut(files["main.hcl"], "\n\n")
		delete(files, "main.hcl")
		files["00.hcl"] = name + "\n"
		blocks := topBlock.FindAllString("\n"+rest, -1)
		if whole := strings.Join(blocks, ""); strings.TrimSpace(whole) != strings.TrimSpace(rest) || len(blocks) < 10 {
			t.Fatalf("%d blocks are not the scroll:\n%s", len(blocks), cmp.Diff(rest, whole))
		}
		for i, block := range blocks {
			files[string(rune('a'+i))+".hcl"] = block
		}
	},
	"locals and variables in another order": func(t *testing.T, files map[string]string) {
		for name, text := range files {
			if !strings.HasSuffix(name, "main.hcl") {
				continue
			}
			// Scrolls stay in their order; what they see is behind them, the last first.
			var names, others []string
			at := topBlock.FindAllString("\n"+text, -1)
			head := strings.TrimSuffix("\n"+text, strings.Join(at, ""))
			for _, block := range at {
				if regexp.MustCompile(`(?m)^(locals|variable|output)\b`).MatchString(block) {
					names = append(names, block)
				} else {
					others = append(others, block)
				}
			}
			slices.Reverse(names)
			files[name] = head + strings.Join(others, "") + strings.Join(names, "")
		}
		swap(t, files, "main.hcl", "  count    = length(local.live)\n", "")
		swap(t, files, "main.hcl", "locals {\n  banner", "locals {\n  count    = length(local.live)\n  banner")
	},
}

func TestScrollOfAWebHostWrittenOtherwiseIsTheSame(t *testing.T) {
	b := newWebHost(t)
	before := b.print()
	b.want(0, "apply", "--auto-approve", b.lay(webHost(t)))
	applied := b.print()
	// What the journal brings up to date: glyphs whose leaf is called otherwise.
	updates := map[string]int{
		"labels renamed": 34, "leaves regrouped": 3, "glyphs moved into a module": 0, "a module written out": 0,
		"split into files": 0, "locals and variables in another order": 0,
	}
	for _, name := range slices.Sorted(maps.Keys(webHostAsWell)) {
		t.Run(name, func(t *testing.T) {
			b := b.in(t)
			files := webHost(t)
			webHostAsWell[name](t, files)
			dir := b.lay(files)
			b.want(0, "plan", "--detailed-exitcode", dir)
			p := b.planned(dir)
			if len(p.Changes) > 0 || p.Summary["unchanged"] != 39 {
				t.Errorf("it plans %s", p.Changes)
			}
			if p.Updates != updates[name] {
				t.Errorf("%d updates, want %d", p.Updates, updates[name])
			}
		})
	}
	t.Run("all of it applied", func(t *testing.T) {
		b := b.in(t)
		files := webHost(t)
		swap(t, files, "main.hcl", "      protect = true\n", "")
		swap(t, files, "main.hcl", "    on_undeclare = \"leave\"\n", "")
		for _, name := range []string{"leaves regrouped", "locals and variables in another order", "a module written out", "labels renamed", "split into files"} {
			webHostAsWell[name](t, files)
		}
		dir := b.lay(files)
		b.want(0, "apply", "--auto-approve", dir)
		b.same("after an apply of the same", applied)
		if p := b.planned(dir); p.Updates != 0 || len(p.Changes) > 0 {
			t.Errorf("it plans %d updates and %s", p.Updates, p.Changes)
		}
		b.want(0, "destroy", "--auto-approve", dir)
		b.same("after destroy", before)
	})
}
