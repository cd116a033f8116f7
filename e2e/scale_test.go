package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// A scaled is a scroll whose modules and for_each make many glyphs, and a host.
type scaled struct {
	t        testing.TB
	dir, bin string
}

// newScaled writes a scroll of n files: modules with a for_each, each with as many files as
// a leaf is to have.
func newScaled(t testing.TB, n, perLeaf int) *scaled {
	return scaledOf(t, map[string]string{
		"scroll/main.hcl": fmt.Sprintf(`
name = "scale"
locals {
  sites = { for p in setproduct(range(100), range(%d)) : format("s%%d-%%d", p[0], p[1]) => p[1] }
  files = { for i in range(%d) : format("f%%d", i) => i }
}
scroll "sites" {
  for_each = local.sites
  source   = "./site"
  name     = each.key
  files    = local.files
}
`, max(1, n/perLeaf/100), perLeaf),
		"scroll/site/site.hcl": `
variable "name" { type = string }
variable "files" { type = map(number) }
locals { dir = "/srv/${var.name}" }
scroll "files" {
  file "f" {
    for_each = var.files
    path     = "${local.dir}/${each.key}"
    content  = "file ${each.value} of ${var.name}\n"
  }
}
output "dir" { value = local.dir }
`,
		"root/etc/hosts": "found\n",
	})
}

// scaledOf writes files of a scroll and a host.
func scaledOf(t testing.TB, files map[string]string) *scaled {
	bin, err := built()
	if err != nil {
		t.Fatal(err)
	}
	home := "/dev/shm" // syncs cost nothing there: what is left is golem's own work
	if st, err := os.Stat(home); err != nil || !st.IsDir() {
		home = ""
	}
	dir, err := os.MkdirTemp(home, "golem-scale-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return &scaled{t, dir, bin}
}

// A cost is what one run of golem took: of the processors, which no other process changes
// much, of the clock, and of memory.
type cost struct {
	cpu, took time.Duration
	memory    int64
}

func (x *scaled) golem(args ...string) cost {
	x.t.Helper()
	cmd := exec.Command(x.bin, append([]string{"--root", x.dir + "/root"}, args...)...)
	start := time.Now()
	if out, err := cmd.CombinedOutput(); err != nil {
		x.t.Fatalf("golem %v: %v\n%.2000s", args, err, out)
	}
	return cost{cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), time.Since(start), maxRSS(cmd)}
}

// scaleSteps are what is done one after another, each as its arguments before the scroll.
var scaleSteps = []scaleStep{
	{"load", []string{"validate"}, false},
	{"plan", []string{"plan"}, false},
	{"plan a part", []string{"plan", "--target", `sites["s1*"]`, "--exclude", `sites["s1-*"]`}, false},
	{"apply", []string{"apply", "--auto-approve"}, true},
	{"apply again", []string{"apply", "--auto-approve"}, true},
	{"plan of drift", []string{"plan", "--drift"}, true},
	{"plan a part of what is in force", []string{"plan", "--target", `sites["s1-*"]`}, true},
	{"plan to destroy", []string{"plan", "--destroy", "--json"}, true},
	{"destroy", []string{"destroy", "--auto-approve"}, true},
}

// A scaleStep is one of them. It acts, or needs what was done, if acts is set.
type scaleStep struct {
	name string
	args []string
	acts bool
}

var oneFileSteps = []scaleStep{
	{"load", []string{"validate"}, false},
	{"plan", []string{"plan"}, false},
	{"apply", []string{"apply", "--auto-approve"}, true},
	{"apply again", []string{"apply", "--auto-approve"}, true},
	{"plan to destroy", []string{"plan", "--destroy", "--json"}, true},
	{"destroy", []string{"destroy", "--auto-approve"}, true},
}

// TestNoStepIsQuadratic: four times as many glyphs take at most five times the work and the
// memory, in whatever step: few to a leaf, and many to a leaf.
func TestNoStepIsQuadratic(t *testing.T) {
	t.Parallel()
	for _, shape := range []struct {
		perLeaf, n int
		acts       bool
	}{{1, 2500, false}, {25, 2500, false}, {5, 1000, true}} {
		if os.Getenv("GOLEM_SOAK") != "" {
			shape.n, shape.acts = 2500, true
		}
		t.Run(fmt.Sprintf("%d to a leaf", shape.perLeaf), func(t *testing.T) {
			var steps []scaleStep
			for _, step := range scaleSteps {
				if shape.acts || !step.acts {
					steps = append(steps, step)
				}
			}
			growsEvenly(t, shape.n, steps, func(n int) *scaled { return newScaled(t, n, shape.perLeaf) })
		})
	}
}

// TestManyEditsOfOneFile: the same holds of edits of one file, as far as people have them:
// though each is put on a file that grows with them, that must not show. Whether one leaf has
// them or each its own, all of them are not put anew for each.
func TestManyEditsOfOneFile(t *testing.T) {
	t.Parallel()
	for name, shape := range map[string]struct {
		perLeaf, n int
		edit       string
	}{
		"lines":              {0, 150, aLine},
		"regions":            {0, 150, "region \"r%[1]d\" {\n  path = \"/etc/f.conf\"\n  content = \"value %[1]d\\nother\\n\"\n}\n"},
		"entries":            {0, 150, "entry \"e%[1]d\" {\n  path = \"/etc/f.json\"\n  key = \"k%[1]d\"\n  value = %[1]d\n}\n"},
		"a line in a leaf":   {1, 40, aLine},
		"an entry in a leaf": {1, 40, "entry \"e%[1]d\" {\n  path = \"/etc/f.json\"\n  key = \"k%[1]d\"\n  value = %[1]d\n}\n"},
	} {
		t.Run(name, func(t *testing.T) {
			growsEvenly(t, shape.n, oneFileSteps, func(n int) *scaled { return newOneFile(t, n, shape.perLeaf, shape.edit) })
		})
	}
}

// aLine declares one line of a file.
const aLine = "line \"l%[1]d\" {\n  path = \"/etc/f.conf\"\n  line = \"value %[1]d = yes\"\n}\n"

// newOneFile writes a scroll of n edits of one file, in leaves of so many, 0 for one leaf.
func newOneFile(t testing.TB, n, perLeaf int, edit string) *scaled {
	if perLeaf == 0 {
		perLeaf = n
	}
	text := []byte("name = \"one\"\n")
	for i := range n {
		if i%perLeaf == 0 {
			text = fmt.Appendf(text, "scroll \"s%d\" {\n", i/perLeaf)
		}
		text = fmt.Appendf(text, edit, i)
		if (i+1)%perLeaf == 0 {
			text = append(text, "}\n"...)
		}
	}
	return scaledOf(t, map[string]string{
		"scroll/main.hcl": string(text),
		"root/etc/f.conf": "# found\n", "root/etc/f.json": "{\n  \"found\": true\n}\n",
	})
}

// growsEvenly has steps done with n glyphs and with four times as many, which may take five
// times as much. The best of some rounds counts: what disturbs only adds.
func growsEvenly(t *testing.T, n int, steps []scaleStep, make func(n int) *scaled) {
	var wrong []string
	least := map[string]cost{}
	for range 4 {
		wrong = nil
		few, many := make(n), make(4*n)
		for _, step := range steps {
			for name, x := range map[string]*scaled{"few": few, "many": many} {
				c, name := x.golem(append(step.args, x.dir+"/scroll")...), step.name+name
				if was, seen := least[name]; seen {
					c.cpu, c.memory = min(c.cpu, was.cpu), min(c.memory, was.memory)
				}
				least[name] = c
			}
			a, b := least[step.name+"few"], least[step.name+"many"]
			if b.cpu > 5*a.cpu || b.memory > 5*a.memory {
				wrong = append(wrong, fmt.Sprintf("%s: of %d glyphs %v, %d MB, of %d %v, %d MB", step.name, n, a.cpu, a.memory>>20, 4*n, b.cpu, b.memory>>20))
			}
		}
		if wrong == nil {
			return
		}
	}
	for _, line := range wrong {
		t.Error(line)
	}
}

// BenchmarkModules times the load of 10,000 files that modules and for_each declare, their
// plan and the no-op apply, as ratios to parsing as many plain blocks, and to lstat and read
// of the same files; and the most memory, to what the parsed blocks hold.
func BenchmarkModules(b *testing.B) {
	const n = 10_000
	var load, plan, again, parse, raw time.Duration
	var most, held int64
	for b.Loop() {
		x := newScaled(b, n, 25)
		scroll := x.dir + "/scroll"
		load += x.golem("validate", scroll).took
		x.golem("apply", "--auto-approve", scroll)
		c := x.golem("plan", scroll)
		plan, most = plan+c.took, max(most, c.memory)
		again += x.golem("apply", "--auto-approve", scroll).took
		raw += readAll(b, filepath.Join(x.dir, "root/srv"))
		took, memory := parsedPlain(b, n)
		parse, held = parse+took, max(held, memory)
		_ = os.RemoveAll(x.dir)
	}
	for name, took := range map[string]time.Duration{"load": load, "plan": plan, "again": again} {
		b.ReportMetric(float64(took)/float64(parse), name+"/parse")
		b.ReportMetric(float64(took)/float64(parse+raw), name+"/parse+read")
	}
	b.ReportMetric(float64(most)/float64(held), "memory/parsed")
}

// BenchmarkOneFile times what 500 lines of one file take, in one leaf and each in its own, as
// ratios to as many files, five to a leaf.
func BenchmarkOneFile(b *testing.B) {
	const n = 500
	for name, perLeaf := range map[string]int{"one leaf": n, "a leaf each": 1} {
		b.Run(name, func(b *testing.B) {
			edits, files := map[string]time.Duration{}, map[string]time.Duration{}
			for b.Loop() {
				x, y := newOneFile(b, n, perLeaf, aLine), newScaled(b, n, 5)
				for _, step := range oneFileSteps {
					edits[step.name] += x.golem(append(step.args, x.dir+"/scroll")...).cpu
					files[step.name] += y.golem(append(step.args, y.dir+"/scroll")...).cpu
				}
				_, _ = os.RemoveAll(x.dir), os.RemoveAll(y.dir)
			}
			for step, took := range edits {
				b.ReportMetric(float64(took)/float64(files[step]), strings.ReplaceAll(step, " ", "-")+"/files")
			}
		})
	}
}

// readAll times lstat and read of every file in a tree.
func readAll(b *testing.B, dir string) time.Duration {
	var names []string
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			names = append(names, path)
		}
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	start := time.Now()
	for _, name := range names {
		_, err1 := os.Lstat(name)
		if _, err := os.ReadFile(name); err != nil || err1 != nil {
			b.Fatal(err, err1)
		}
	}
	return time.Since(start)
}

// parsedPlain times the parse of the same files as plain blocks, and says what that holds.
func parsedPlain(b *testing.B, n int) (took time.Duration, held int64) {
	var text []byte
	for i := range n {
		text = fmt.Appendf(text, "file \"/srv/s%d/f%d\" {\n  content = \"file %d of s%d\\n\"\n}\n", i/25, i%25, i%25, i/25)
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	start := time.Now()
	file, diags := hclsyntax.ParseConfig(text, "plain.hcl", hcl.InitialPos)
	took = time.Since(start)
	if diags.HasErrors() {
		b.Fatal(diags)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(file)
	return took, int64(after.HeapAlloc) - int64(before.HeapAlloc)
}
