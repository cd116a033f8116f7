package e2e

import (
	"bufio"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A benched is a scroll of n files, a host, and the same files for a raw loop.
type benched struct {
	b         *testing.B
	bin, dir  string
	n         int
	root, raw string
}

func newBenched(b *testing.B, n int, scroll string) *benched {
	bin, err := built()
	if err != nil {
		b.Fatal(err)
	}
	dir := b.TempDir()
	x := &benched{b: b, bin: bin, dir: dir, n: n, root: dir + "/root", raw: dir + "/raw"}
	for _, err := range []error{
		os.MkdirAll(x.root+"/etc", 0o755), os.Mkdir(x.raw, 0o755), os.Mkdir(dir+"/scroll", 0o755),
		os.WriteFile(dir+"/scroll/a.hcl", []byte("name = \"bench\"\n"+scroll), 0o644),
	} {
		if err != nil {
			b.Fatal(err)
		}
	}
	return x
}

// content is one file's bytes: about two hundred.
func content(i int) string { return fmt.Sprintf("file %d %s\n", i, strings.Repeat("x", 190)) }

func filesScroll(n int) string {
	var s strings.Builder
	for i := range n {
		fmt.Fprintf(&s, "file \"/data/d%d/f%d\" {\n  content = %q\n  mode    = \"0640\"\n}\n", i/100, i, content(i))
	}
	return s.String()
}

// golem runs and times one command.
func (x *benched) golem(args ...string) time.Duration {
	var most int64
	return x.peak(&most, args...)
}

// rawWrite is the durable limit of writing n files: temps, one syncfs, renames, one
// syncfs.
func (x *benched) rawWrite() time.Duration {
	start := time.Now()
	for i := range x.n {
		dir := filepath.Join(x.raw, fmt.Sprint("d", i/100))
		if i%100 == 0 {
			x.must(os.MkdirAll(dir, 0o755))
		}
		x.must(os.WriteFile(filepath.Join(dir, fmt.Sprint(".t", i)), []byte(content(i)), 0o640))
	}
	x.sync()
	for i := range x.n {
		dir := filepath.Join(x.raw, fmt.Sprint("d", i/100))
		x.must(os.Rename(filepath.Join(dir, fmt.Sprint(".t", i)), filepath.Join(dir, fmt.Sprint("f", i))))
	}
	x.sync()
	return time.Since(start)
}

// rawRead is the limit of looking at n files: lstat, read and hash each.
func (x *benched) rawRead() time.Duration {
	start := time.Now()
	for i := range x.n {
		name := filepath.Join(x.raw, fmt.Sprint("d", i/100), fmt.Sprint("f", i))
		_, err := os.Lstat(name)
		x.must(err)
		data, err := os.ReadFile(name)
		x.must(err)
		sha256.Sum256(data)
	}
	return time.Since(start)
}

// rawRemove is the limit of removing n files.
func (x *benched) rawRemove() time.Duration {
	start := time.Now()
	for i := range x.n {
		x.must(os.Remove(filepath.Join(x.raw, fmt.Sprint("d", i/100), fmt.Sprint("f", i))))
	}
	x.sync()
	return time.Since(start)
}

func (x *benched) must(err error) {
	if err != nil {
		x.b.Fatal(err)
	}
}

func (x *benched) sync() {
	f, err := os.Open(x.raw)
	x.must(err)
	x.must(unix.Syncfs(int(f.Fd())))
	x.must(f.Close())
}

// BenchmarkFiles times a fresh apply, the same again, a plan and a destroy of N files,
// each as a ratio to the raw loop of the same run.
func BenchmarkFiles(b *testing.B) {
	for _, n := range []int{1000, 10000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var apply, again, plan, destroy, write, read, remove time.Duration
			for b.Loop() {
				x := newBenched(b, n, filesScroll(n))
				scroll := x.dir + "/scroll"
				write += x.rawWrite()
				apply += x.golem("apply", scroll, "--auto-approve")
				read += x.rawRead()
				again += x.golem("apply", scroll, "--auto-approve")
				plan += x.golem("plan", scroll)
				destroy += x.golem("destroy", scroll, "--auto-approve")
				remove += x.rawRemove()
				x.must(os.RemoveAll(x.dir))
			}
			b.ReportMetric(float64(apply)/float64(write), "apply/raw")
			b.ReportMetric(float64(again)/float64(read), "again/raw")
			b.ReportMetric(float64(plan)/float64(read), "plan/raw")
			b.ReportMetric(float64(destroy)/float64(remove), "destroy/raw")
		})
	}
}

// BenchmarkLines times a thousand lines in one file, and the same again, as ratios to
// writing that file once and to reading it.
func BenchmarkLines(b *testing.B) {
	const n = 1000
	var s, text strings.Builder
	for i := range n {
		line := fmt.Sprintf("10.0.%d.%d host%d", i/250, i%250, i)
		fmt.Fprintf(&s, "line \"l%d\" {\n  path = \"/etc/hosts\"\n  line = %q\n}\n", i, line)
		text.WriteString(line + "\n")
	}
	var apply, again, write, read time.Duration
	for b.Loop() {
		x := newBenched(b, n, s.String())
		start := time.Now()
		f, err := os.Create(x.raw + "/hosts")
		x.must(err)
		_, err = f.WriteString(text.String())
		x.must(err)
		x.must(f.Sync())
		x.must(f.Close())
		write += time.Since(start)
		apply += x.golem("apply", x.dir+"/scroll", "--auto-approve")
		start = time.Now()
		_, err = os.ReadFile(x.raw + "/hosts")
		x.must(err)
		read += time.Since(start)
		again += x.golem("apply", x.dir+"/scroll", "--auto-approve")
		x.must(os.RemoveAll(x.dir))
	}
	b.ReportMetric(float64(apply)/float64(write), "apply/raw")
	b.ReportMetric(float64(again)/float64(read), "again/raw")
}

// writeLargeJSON writes a JSON file of some 50 MB, never holding all of it: the most memory
// of a process that is started later counts from this one's.
func writeLargeJSON(name string) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer f.Close()
	w := bufio.NewWriter(f)
	n, err := fmt.Fprint(w, "{\n  \"list\": [\n")
	for i := 0; err == nil && n < 50_000_000; i++ {
		var more int
		more, err = fmt.Fprintf(w, "    {\"id\": %d, \"name\": \"member \\u00e9 %d\", \"tags\": [\"a\", \"b\"], \"ratio\": %d.5e-3, \"on\": true},\n", i, i, i)
		n += more
	}
	if err == nil {
		_, err = fmt.Fprint(w, "    {}\n  ],\n  \"last\": {\"key\": 1}\n}\n")
	}
	if err == nil {
		err = w.Flush()
	}
	return err
}

// copied times cp, synced as golem syncs what it puts in place: the file, then its name.
func (x *benched) copied(from, to string) time.Duration {
	start := time.Now()
	x.must(exec.Command("cp", from, to).Run())
	for _, name := range []string{to, filepath.Dir(to)} {
		f, err := os.Open(name)
		x.must(err)
		x.must(f.Sync())
		x.must(f.Close())
	}
	return time.Since(start)
}

// parsed times one parse by encoding/json, and one look by it whether the text is JSON.
func parsed(b *testing.B, name string) (parse, scan time.Duration) {
	text, err := os.ReadFile(name)
	if err != nil {
		b.Fatal(err)
	}
	start := time.Now()
	if !json.Valid(text) {
		b.Fatal("it is no JSON")
	}
	scan = time.Since(start)
	start = time.Now()
	var all any
	if err := json.Unmarshal(text, &all); err != nil {
		b.Fatal(err)
	}
	return time.Since(start), scan
}

// BenchmarkJSON50MB changes one key of a 50 MB file by the whole of golem, as ratios to cp
// and one parse, and to cp and the mere look whether the text is JSON; and prints the most
// memory that golem held.
func BenchmarkJSON50MB(b *testing.B) {
	const entry = "entry \"k\" {\n  path  = \"/etc/large.json\"\n  key   = \"last.key\"\n  value = %d\n}\n"
	var plan, apply, again, replace, destroy, raw time.Duration
	var most int64
	source := filepath.Join(b.TempDir(), "large.json")
	if err := writeLargeJSON(source); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		x := newBenched(b, 1, fmt.Sprintf(entry, 2))
		scroll, file := x.dir+"/scroll", x.root+"/etc/large.json"
		raw += x.copied(source, file)
		plan += x.peak(&most, "plan", scroll)
		apply += x.peak(&most, "apply", scroll, "--auto-approve")
		again += x.peak(&most, "plan", "--detailed-exitcode", scroll)
		x.must(os.WriteFile(scroll+"/a.hcl", []byte("name = \"bench\"\n"+fmt.Sprintf(entry, 3)), 0o644))
		replace += x.peak(&most, "apply", scroll, "--auto-approve")
		destroy += x.peak(&most, "destroy", scroll, "--auto-approve")
		x.must(exec.Command("cmp", file, source).Run())
		x.must(os.RemoveAll(x.dir))
	}
	if most <= ownPeak() {
		b.Log("golem held less than this process did before")
	} else {
		b.ReportMetric(float64(most)/1e6, "MB-peak")
	}
	parse, scan := parsed(b, source) // last: it takes much memory
	parse, scan = parse*time.Duration(b.N), scan*time.Duration(b.N)
	for name, took := range map[string]time.Duration{"plan": plan, "apply": apply, "again": again, "replace": replace, "destroy": destroy} {
		b.ReportMetric(float64(took)/float64(raw+parse), name+"/cp+parse")
		b.ReportMetric(float64(took)/float64(raw+scan), name+"/cp+scan")
	}
}

// peak runs and times one command, and notes the most memory that any has held.
func (x *benched) peak(most *int64, args ...string) time.Duration {
	cmd := exec.Command(x.bin, append([]string{"--root", x.root, "--state", x.dir + "/journal/planroom.db"}, args...)...)
	start := time.Now()
	if out, err := cmd.CombinedOutput(); err != nil {
		x.b.Fatalf("%v: %v\n%s", args, err, out)
	}
	took := time.Since(start)
	*most = max(*most, maxRSS(cmd))
	return took
}
