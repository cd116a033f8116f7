package e2e

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

// tgz makes a compressed tar of files by name, and of directories where a name ends so.
func tgz(t testing.TB, files ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for i := 0; i+1 < len(files); i += 2 {
		h := &tar.Header{Name: files[i], Mode: 0o644, Size: int64(len(files[i+1])), Typeflag: tar.TypeReg}
		if target, link := strings.CutPrefix(files[i+1], "→"); link {
			h.Typeflag, h.Linkname, h.Size = tar.TypeSymlink, target, 0
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			if _, err := io.WriteString(w, files[i+1]); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func sumOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// TestArchiveIsRefusedWhereAnotherGlyphHasItsFile: no path has two owners.
func TestArchiveIsRefusedWhereAnotherGlyphHasItsFile(t *testing.T) {
	s := newStage(t)
	s.write(t, "opt/.keep", "")
	home := filepath.Dir(s.scroll)
	for name, data := range map[string][]byte{
		"a.tgz": tgz(t, "bin/run", "a", "conf", "a"), "b.tgz": tgz(t, "conf", "b", "bin/other", "b"), "up.tgz": tgz(t, "fine", "x", "../up", "x"),
		"dir.tgz": tgz(t, "lib/x/y", "deep"),
	} {
		if err := os.WriteFile(filepath.Join(home, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	archive := func(path, name, more string) string {
		return fmt.Sprintf("archive %q {\n  source = %q\n%s}\n", path, name, more)
	}
	before := treeLines(t, s.root)
	for what, c := range map[string]struct{ scroll, says string }{
		"a file":        {archive("/opt/app", "a.tgz", "") + "file \"/opt/app/conf\" {\n  content = \"\"\n}\n", `/opt/app/conf is in the archive, and belongs to file:/opt/app/conf, too; leave it out of the archive: exclude = ["conf"]`},
		"a line":        {"line \"l\" {\n  path = \"/opt/app/conf\"\n  line = \"x\"\n}\n" + archive("/opt/app", "a.tgz", ""), "belongs to line:/opt/app/conf:x, too"},
		"a link":        {archive("/opt/app", "dir.tgz", "") + "link \"/opt/app/lib\" {\n  target = \"/usr\"\n}\n", "belongs to link:/opt/app/lib, too"},
		"an archive":    {archive("/opt/app", "a.tgz", "") + archive("/opt/app", "b.tgz", ""), "Both this one and archive:/opt/app:a.tgz have /opt/app/conf. Leave it out of one of the two with exclude."},
		"one above":     {archive("/opt", "a.tgz", "") + "archive \"b\" {\n  path = \"/opt/bin\"\n  source = \"a.tgz\"\n}\n", "s.hcl"},
		"hostile":       {archive("/opt/app", "up.tgz", ""), `a.tgz`},
		"no checksum":   {archive("/opt/app", "https://example.invalid/x.tgz", ""), "Archive without a checksum"},
		"plain http":    {archive("/opt/app", "http://example.invalid/x.tgz", "  sha256 = \""+strings.Repeat("0", 64)+"\"\n"), "Not an https URL"},
		"other sum":     {archive("/opt/app", "a.tgz", "  sha256 = \""+strings.Repeat("0", 64)+"\"\n"), "Archive has another checksum"},
		"no sum":        {archive("/opt/app", "a.tgz", "  sha256 = \"abc\"\n"), "Not a SHA-256"},
		"the root":      {archive("/", "a.tgz", ""), "Path is protected"},
		"not there":     {archive("/opt/app", "none.tgz", ""), "Source cannot be read"},
		"half strips":   {archive("/opt/app", "a.tgz", "  strip = 1.5\n"), "Not a number of directories"},
		"bad pattern":   {archive("/opt/app", "a.tgz", "  exclude = [\"/conf\"]\n"), "Not a pattern"},
		"nothing left":  {archive("/opt/app", "a.tgz", "  strip = 5\n"), "nothing of it is to be unpacked"},
		"no archive":    {archive("/opt/app", "s.hcl", ""), "it is no archive that golem knows"},
		"in a file":     {archive("/etc/hostname", "a.tgz", ""), "/etc/hostname is a file, and a directory in the archive"},
		"in the kernel": {archive("/proc/x", "a.tgz", ""), "Path is protected"},
	} {
		s.declare(t, "name = \"web\"\n"+c.scroll)
		switch what {
		case "one above":
			if a := (call{}).golem(t, append([]string{"plan"}, s.args...)...); a.code != 0 {
				t.Errorf("two archives that have no file in common: exit %d\n%s", a.code, a.stderr)
			}
			continue
		case "hostile":
			c.says = `"../up" leads out of the directory`
		}
		a := call{}.golem(t, append([]string{"apply", "--auto-approve"}, s.args...)...)
		if said := strings.Join(strings.Fields(strings.NewReplacer("│", " ", "╷", " ", "╵", " ").Replace(a.stderr)), " "); a.code != 1 || !strings.Contains(said, c.says) {
			t.Errorf("%s: exit %d, not %q:\n%s%s", what, a.code, c.says, a.stdout, a.stderr)
		}
		sameLines(t, what, before, treeLines(t, s.root))
	}
}

// TestArchiveOfAnotherLineageKeepsItsFiles: a later scroll cannot take them.
func TestArchiveOfAnotherLineageKeepsItsFiles(t *testing.T) {
	s := newStage(t)
	if err := os.WriteFile(filepath.Join(filepath.Dir(s.scroll), "a.tgz"), tgz(t, "conf", "a"), 0o644); err != nil {
		t.Fatal(err)
	}
	s.declare(t, "name = \"one\"\narchive \"/opt/app\" {\n  source = \"a.tgz\"\n}\n")
	s.run(t, 0, "apply", "--auto-approve")
	for _, other := range []string{"file \"/opt/app/conf\" {\n  content = \"\"\n}\n", "line \"l\" {\n  path = \"/opt/app/conf\"\n  line = \"x\"\n}\n"} {
		s.declare(t, "name = \"two\"\n"+other)
		says(t, strings.NewReplacer("│", "", "\n", " ").Replace(s.run(t, 1, "plan").stderr), `belongs to archive:/opt/app:a.tgz of the lineage "one"`)
	}
	s.declare(t, "name = \"two\"\narchive \"/opt\" {\n  source = \"a.tgz\"\n}\narchive \"x\" {\n  path   = \"/opt/app\"\n  source = \"b.tgz\"\n}\n")
	if err := os.WriteFile(filepath.Join(filepath.Dir(s.scroll), "b.tgz"), tgz(t, "conf", "b"), 0o644); err != nil {
		t.Fatal(err)
	}
	says(t, strings.NewReplacer("│", "", "\n", " ").Replace(s.run(t, 1, "plan").stderr), "Both this one and archive:/opt/app:a.tgz have /opt/app/conf")
}

// TestFilesMoveBetweenAnArchiveAndAGlyph: what leaves the archive for a file of its own,
// and comes back, has what was found beneath it all the time.
func TestFilesMoveBetweenAnArchiveAndAGlyph(t *testing.T) {
	s := newStage(t)
	s.write(t, "opt/app/conf", "found\n")
	if err := os.WriteFile(filepath.Join(filepath.Dir(s.scroll), "a.tgz"), tgz(t, "conf", "a", "bin/run", "r"), 0o644); err != nil {
		t.Fatal(err)
	}
	before := treeLines(t, s.root)
	const whole, less = "archive \"/opt/app\" {\n  source = \"a.tgz\"\n}\n", "archive \"/opt/app\" {\n  source  = \"a.tgz\"\n  exclude = [\"conf\"]\n}\n"
	const file = "file \"/opt/app/conf\" {\n  content = \"mine\\n\"\n}\n"
	leaf := func(name, text string) string { return "scroll \"" + name + "\" {\n" + text + "}\n" }
	for _, scroll := range []string{
		leaf("a", whole), leaf("b", file) + leaf("a", less), leaf("a", whole), leaf("a", less) + leaf("b", file), leaf("a", less+file),
		leaf("a", whole), leaf("a", file+less), leaf("b", less) + leaf("a", file),
	} {
		s.declare(t, "name = \"web\"\n"+scroll)
		s.run(t, 0, "apply", "--auto-approve")
		if a := s.run(t, 0, "plan", "--detailed-exitcode"); !strings.Contains(a.stdout, "No changes") {
			t.Errorf("after %s:\n%s", scroll, a.stdout)
		}
		want := "a"
		if strings.Contains(scroll, "mine") {
			want = "mine\n"
		}
		if got := readTree(t, s.root, "opt/app/conf"); got != want {
			t.Errorf("after %s: %q", scroll, got)
		}
	}
	s.run(t, 0, "destroy", "--auto-approve")
	sameLines(t, "after destroy", before, treeLines(t, s.root))
}

// A shop serves archives over https with a certificate of its own.
type shop struct {
	*httptest.Server
	asked atomic.Int32
	env   []string
}

func newShop(t *testing.T, serve func(s *shop, w http.ResponseWriter, r *http.Request)) *shop {
	t.Helper()
	s := &shop{}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.asked.Add(1)
		serve(s, w, r)
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	cert := filepath.Join(t.TempDir(), "cert.pem")
	if err := os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o644); err != nil {
		t.Fatal(err)
	}
	s.env = []string{"SSL_CERT_FILE=" + cert, "SSL_CERT_DIR=/nonexistent"}
	return s
}

// TestArchiveOverHTTPS: it is downloaded once, looked at before the first write, and from
// then on in the journal: a repair needs no network.
func TestArchiveOverHTTPS(t *testing.T) {
	good, bad := tgz(t, "bin/run", strings.Repeat("run ", 30000), "conf", "x"), tgz(t, "ok", "x", "../out", "x")
	server := newShop(t, func(s *shop, w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/v1/app.tgz":
			http.Redirect(w, r, s.URL+"/moved", http.StatusFound)
		case "/moved":
			_, _ = w.Write(good)
		case "/bad.tgz":
			_, _ = w.Write(bad)
		case "/plain.tgz":
			http.Redirect(w, r, "http://"+r.Host+"/moved", http.StatusFound)
		default:
			http.NotFound(w, r)
		}
	})
	s := newStage(t)
	before := treeLines(t, s.root)
	c := call{env: server.env}
	run := func(code int, args ...string) answer {
		t.Helper()
		return c.must(t, code, append(args, s.args...)...)
	}
	declare := func(path, sum string) {
		s.declare(t, fmt.Sprintf("name = \"web\"\npolicy {\n  retry {\n    max_attempts = 2\n    base_delay   = \"10ms\"\n  }\n}\narchive \"/opt/app\" {\n  source = \"%s%s\"\n  sha256 = %q\n}\n", server.URL, path, sum))
	}
	for what, x := range map[string]struct{ path, sum, says string }{
		"another checksum": {"/moved", sumOf(bad), "has the sha256 " + sumOf(good) + ", not " + sumOf(bad)},
		"hostile":          {"/bad.tgz", sumOf(bad), `"../out" leads out of the directory`},
		"not there":        {"/none", sumOf(good), "the server answers 404 Not Found"},
		"plain http":       {"/plain.tgz", sumOf(good), "it redirects to what is not https"},
	} {
		declare(x.path, x.sum)
		says(t, run(0, "plan").stdout, "what it holds is looked at once it is downloaded and its sha256 is right")
		a := run(1, "apply", "--auto-approve")
		if !strings.Contains(strings.Join(strings.Fields(a.stdout+a.stderr), " "), x.says) {
			t.Errorf("%s: not %q:\n%s%s", what, x.says, a.stdout, a.stderr)
		}
		sameLines(t, what, before, treeLines(t, s.root))
	}
	// What is in its way is found before anything is touched, an earlier leaf's files included.
	s.declare(t, fmt.Sprintf("name = \"web\"\nscroll \"first\" {\n  file \"/etc/first\" {\n    content = \"x\"\n  }\n}\nscroll \"app\" {\n  file \"/opt/app/conf\" {\n    content = \"y\"\n  }\n"+
		"  archive \"/opt/app\" {\n    source = \"%s/moved\"\n    sha256 = %q\n  }\n}\n", server.URL, sumOf(good)))
	says(t, run(0, "plan").stdout, "what it holds is looked at once it is downloaded")
	says(t, run(1, "apply", "--auto-approve").stderr, `/opt/app/conf is in the archive, and belongs to file:/opt/app/conf, too`)
	sameLines(t, "in the way of another glyph", before, treeLines(t, s.root))

	c.env = []string{"SSL_CERT_FILE=/dev/null", "SSL_CERT_DIR=/nonexistent"}
	declare("/v1/app.tgz", strings.ToUpper(sumOf(good)))
	a := run(1, "apply", "--auto-approve")
	says(t, a.stdout+a.stderr, "certificate")
	sameLines(t, "a certificate nobody vouches for", before, treeLines(t, s.root))

	c.env = server.env
	run(0, "apply", "--auto-approve")
	if got := readTree(t, s.root, "opt/app/bin/run"); got != strings.Repeat("run ", 30000) {
		t.Errorf("what was unpacked has %d bytes", len(got))
	}
	asked := server.asked.Load()
	server.Close()
	run(0, "plan", "--detailed-exitcode")
	if err := os.Remove(filepath.Join(s.root, "opt/app/bin/run")); err != nil {
		t.Fatal(err)
	}
	says(t, run(0, "plan").stdout, "! archive:/opt/app:app.tgz repair drifted: bin/run is gone")
	run(0, "apply", "--auto-approve")
	if got := readTree(t, s.root, "opt/app/bin/run"); len(got) != 120000 || server.asked.Load() != asked {
		t.Errorf("the repair: %d bytes, %d more requests", len(got), server.asked.Load()-asked)
	}
	declare("/v2/app2.tgz", sumOf(bad))
	a = run(1, "apply", "--auto-approve")
	says(t, a.stdout+a.stderr, "connection refused")
	if got := readTree(t, s.root, "opt/app/conf"); got != "x" {
		t.Errorf("without a network, conf is %q", got)
	}
	if left, err := filepath.Glob(filepath.Dir(s.scroll) + "/planroom.db.scratch/*"); err != nil || len(left) > 0 {
		t.Errorf("downloads were left: %v %v", left, err)
	}
	run(0, "destroy", "--auto-approve")
	sameLines(t, "after destroy", before, treeLines(t, s.root))
}

// TestArchiveInJSONTellsEveryFile: the text has the first few, JSON has all.
func TestArchiveInJSONTellsEveryFile(t *testing.T) {
	s := newStage(t)
	var files, names []string
	for i := range 20 {
		names = append(names, fmt.Sprintf("d/f%02d", i))
		files = append(files, names[i], "x")
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(s.scroll), "a.tgz"), tgz(t, append(files, "l", "→d/f00")...), 0o644); err != nil {
		t.Fatal(err)
	}
	s.declare(t, "name = \"web\"\narchive \"/opt/app\" {\n  source = \"a.tgz\"\n}\n")
	s.run(t, 0, "apply", "--auto-approve")
	for _, name := range names[:12] {
		s.write(t, "opt/app/"+name, "by hand")
	}
	says(t, s.run(t, 0, "plan").stdout, "drifted: d/f00 was changed by hand, d/f01 was changed by hand, d/f02 was changed by hand and 9 more; 12 of its 22 paths")
	var doc struct {
		Changes []struct {
			After struct {
				Changed []string `json:"changed"`
				Drift   []string `json:"drift"`
				Files   int      `json:"files"`
			} `json:"after"`
		} `json:"changes"`
	}
	if err := json.Unmarshal([]byte(s.run(t, 0, "plan", "--json").stdout), &doc); err != nil {
		t.Fatal(err)
	}
	if after := doc.Changes[0].After; !slices.Equal(after.Changed, names[:12]) || len(after.Drift) != 12 || after.Files != 21 {
		t.Errorf("in JSON: %+v", after)
	}
}

// TestSyncsAndMemoryOfAnArchiveOfTenThousandFiles: it is one batch, whatever it holds.
func TestSyncsAndMemoryOfAnArchiveOfTenThousandFiles(t *testing.T) {
	t.Parallel()
	x := tracer(t, 0, 0)
	var files []string
	for i := range 10000 {
		files = append(files, fmt.Sprintf("d%d/f%d", i/100, i), fmt.Sprintf("file %d\n", i))
	}
	for _, err := range []error{
		os.WriteFile(x.dir+"/scroll/a.tgz", tgz(t, files...), 0o644),
		os.WriteFile(x.dir+"/scroll/a.hcl", []byte("name = \"traced\"\narchive \"/data\" {\n  source = \"a.tgz\"\n}\n"), 0o644),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	before := x.print()
	for _, run := range x.rounds(16) {
		if run.name != "no-op apply" {
			x.bounded(run)
		}
	}
	sameLines(t, "after destroy", before, x.print())
}
