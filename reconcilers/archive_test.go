package reconcilers

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"
	"pgregory.net/rapid"

	"golem/scrolls"
)

// A member is an entry of a test's archive: a directory where its name ends so, else a
// file, or what its type says.
type member struct {
	name, content string
	typ           byte   // of tar; 0: by the name
	target        string // of a link
	mode          int64
}

// archiveTime is when every member of a test's archive was changed.
var archiveTime = time.Unix(1_600_000_000, 0)

func tarball(members ...member) []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, m := range members {
		h := &tar.Header{Name: m.name, Typeflag: m.typ, Linkname: m.target, Mode: m.mode, ModTime: archiveTime, Size: int64(len(m.content)), Format: tar.FormatGNU}
		switch {
		case m.typ == 0 && strings.HasSuffix(m.name, "/"):
			h.Typeflag = tar.TypeDir
		case m.typ == 0:
			h.Typeflag = tar.TypeReg
		}
		if h.Mode == 0 && h.Typeflag == tar.TypeDir {
			h.Mode = 0o755
		} else if h.Mode == 0 {
			h.Mode = 0o644
		}
		if err := w.WriteHeader(h); err != nil {
			panic(err)
		}
		if _, err := io.WriteString(w, m.content); err != nil {
			panic(err)
		}
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	return b.Bytes()
}

func zipOf(members ...member) []byte {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, m := range members {
		h := &zip.FileHeader{Name: m.name, Modified: archiveTime, Method: zip.Deflate}
		mode, content := fs.FileMode(m.mode&0o777), m.content
		if mode == 0 {
			mode = 0o644
		}
		switch m.typ {
		case tar.TypeSymlink:
			mode, content = mode|fs.ModeSymlink, m.target
		case tar.TypeFifo:
			mode |= fs.ModeNamedPipe
		case tar.TypeChar:
			mode |= fs.ModeDevice | fs.ModeCharDevice
		}
		if strings.HasSuffix(m.name, "/") {
			mode, h.Method = 0o755|fs.ModeDir, zip.Store
		}
		if m.mode&0o4000 != 0 {
			mode |= fs.ModeSetuid
		}
		h.SetMode(mode)
		f, err := w.CreateHeader(h)
		if err == nil && !mode.IsDir() {
			_, err = io.WriteString(f, content)
		}
		if err != nil {
			panic(err)
		}
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// squeezed is a tar compressed in one of the ways golem knows.
func squeezed(data []byte, how string) []byte {
	var b bytes.Buffer
	var w io.WriteCloser
	var err error
	switch how {
	case "gz":
		w = gzip.NewWriter(&b)
	case "zst":
		w, err = zstd.NewWriter(&b)
	case "xz":
		w, err = xz.NewWriter(&b)
	default:
		return data
	}
	if err == nil {
		_, err = w.Write(data)
	}
	if err := errors.Join(err, w.Close()); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// entriesIn checks an archive as a glyph with these arguments would have it.
func entriesIn(data []byte, a scrolls.Attrs, bounds archiveBounds) (*archiveList, error) {
	if a["path"] == nil {
		a["path"] = "/opt/app"
	}
	return packed{bytes.NewReader(data), int64(len(data)), "it.tar"}.list(context.Background(), a, bounds)
}

// shape is a list in one line.
func (l *archiveList) shape() string {
	var parts []string
	for _, e := range l.entries {
		switch e.Type {
		case Dir:
			parts = append(parts, fmt.Sprintf("%s/%04o", e.Path, e.Mode))
		case Link:
			parts = append(parts, fmt.Sprintf("%s>%s", e.Path, e.Target))
		default:
			parts = append(parts, fmt.Sprintf("%s=%d:%04o", e.Path, e.Size, e.Mode))
		}
	}
	return strings.Join(parts, " ")
}

var plainMembers = []member{
	{name: "app-1/", mode: 0o750},
	{name: "./app-1/bin/run", content: "#!/bin/sh\n", mode: 0o775},
	{name: "app-1/lib/a.so", content: "aa"},
	{name: "app-1/link", typ: tar.TypeSymlink, target: "lib/a.so"},
	{name: "app-1/up", typ: tar.TypeSymlink, target: "bin/../lib"},
	{name: "README", content: ""},
}

func TestEveryFormatIsToldByItsBytes(t *testing.T) {
	for name, data := range map[string][]byte{
		"tar": tarball(plainMembers...), "gz": squeezed(tarball(plainMembers...), "gz"), "zst": squeezed(tarball(plainMembers...), "zst"),
		"xz": squeezed(tarball(plainMembers...), "xz"), "zip": zipOf(plainMembers...),
	} {
		list, err := entriesIn(data, scrolls.Attrs{}, usualBounds)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want := "/0755 README=0:0644 app-1/0750 app-1/bin/0755 app-1/bin/run=10:0775 app-1/lib/0755 app-1/lib/a.so=2:0644 app-1/link>lib/a.so app-1/up>bin/../lib"
		if name == "zip" {
			want = strings.Replace(want, "app-1/0750", "app-1/0755", 1)
		}
		if got := list.shape(); got != want {
			t.Errorf("%s:\nhave %s\nwant %s", name, got, want)
		}
		for _, e := range list.entries {
			if e.Type == File && e.Mtime != archiveTime.UnixNano() {
				t.Errorf("%s: %s is of %d, not of %d", name, e.Path, e.Mtime, archiveTime.UnixNano())
			}
		}
	}
}

func TestStripIncludeExclude(t *testing.T) {
	list := func(words ...string) []any {
		var all []any
		for _, w := range words {
			all = append(all, w)
		}
		return all
	}
	for want, a := range map[string]scrolls.Attrs{
		"/0755 bin/0755 bin/run=10:0775 lib/0755 lib/a.so=2:0644 link>lib/a.so up>bin/../lib": {"strip": json.Number("1")},
		"/0755 run=10:0775 a.so=2:0644":                                          {"strip": json.Number("2"), "note": "order"},
		"/0755 bin/0755 bin/run=10:0775":                                         {"strip": json.Number("1"), "include": list("bin")},
		"/0755 README=0:0644 app-1/0750 app-1/link>lib/a.so app-1/up>bin/../lib": {"exclude": list("app-1/bin", "**/*.so", "app-1/lib/")},
		"/0755 app-1/0750 app-1/lib/0755 app-1/lib/a.so=2:0644":                  {"include": list("**/*.so")},
	} {
		got, err := entriesIn(tarball(plainMembers...), a, usualBounds)
		if err != nil {
			t.Errorf("%v: %v", a, err)
			continue
		}
		if a["note"] != nil {
			want = "/0755 a.so=2:0644 run=10:0775"
		}
		if got.shape() != want {
			t.Errorf("%v:\nhave %s\nwant %s", a, got.shape(), want)
		}
	}
	if _, err := entriesIn(tarball(plainMembers...), scrolls.Attrs{"strip": json.Number("7")}, usualBounds); err == nil || !strings.Contains(err.Error(), "nothing of it") {
		t.Errorf("an archive of which nothing is left: %v", err)
	}
}

func TestAHardLinkIsAFileOfItsOwn(t *testing.T) {
	data := tarball(member{name: "a/one", content: "12345", mode: 0o600}, member{name: "two", typ: tar.TypeLink, target: "a/one"}, member{name: "three", typ: tar.TypeLink, target: "./two"})
	list, err := entriesIn(data, scrolls.Attrs{"exclude": []any{"a"}}, usualBounds)
	if err != nil {
		t.Fatal(err)
	}
	if want := "/0755 three=5:0600 two=5:0600"; list.shape() != want {
		t.Errorf("have %s, want %s", list.shape(), want)
	}
}

func TestALabelOfTheWholeArchiveIsNoEntry(t *testing.T) {
	list, err := entriesIn(tarball(member{name: "backup", typ: gnuLabel}, member{name: "one", content: "1", typ: tar.TypeCont}), scrolls.Attrs{}, usualBounds)
	if err != nil {
		t.Fatal(err)
	}
	if want := "/0755 one=1:0644"; list.shape() != want {
		t.Errorf("have %s, want %s", list.shape(), want)
	}
}

// TestHostileArchives: each is refused whole, and the entry is named.
func TestHostileArchives(t *testing.T) {
	ok := member{name: "fine", content: "x"}
	link := func(name, target string) member { return member{name: name, typ: tar.TypeSymlink, target: target} }
	for what, c := range map[string]struct {
		members []member
		says    string
		zip     bool // can be a zip, too
	}{
		"traversal":              {[]member{{name: "../evil"}}, `"../evil" leads out of the directory`, true},
		"traversal inside":       {[]member{{name: "a/../../evil"}}, `"a/../../evil" leads out`, true},
		"dots that stay":         {[]member{{name: "a/../b"}}, `"a/../b" leads out`, true},
		"absolute":               {[]member{{name: "/etc/passwd"}}, `"/etc/passwd" is an absolute name`, true},
		"newline":                {[]member{{name: "a\nb"}}, `"a\nb" holds a control character`, true},
		"escape":                 {[]member{{name: "a\x1b[2Jb"}}, `holds a control character`, true},
		"long name":              {[]member{{name: strings.Repeat("n", 256)}}, "is longer than a file's name can be", true},
		"device":                 {[]member{{name: "null", typ: tar.TypeChar}}, `"null" is a device`, true},
		"disk":                   {[]member{{name: "sda", typ: tar.TypeBlock}}, `"sda" is a device`, false},
		"fifo":                   {[]member{{name: "pipe", typ: tar.TypeFifo}}, `"pipe" is a pipe`, true},
		"unknown type":           {[]member{{name: "odd", typ: 'M'}}, `"odd" is of the unknown type`, false},
		"setuid":                 {[]member{{name: "su", mode: 0o4755}}, `"su" is setuid or setgid (mode 4755)`, true},
		"setgid":                 {[]member{{name: "sg", mode: 0o2755}}, `"sg" is setuid or setgid`, false},
		"link up":                {[]member{link("l", "../x")}, `"l" is a link to "../x", outside`, true},
		"link absolute":          {[]member{link("l", "/etc/passwd")}, `"l" is a link to "/etc/passwd", outside`, true},
		"link absolute beside":   {[]member{link("l", "/opt/app2/x")}, `outside of the directory`, true},
		"link absolute with ..":  {[]member{link("l", "/opt/app/../x")}, `outside of the directory`, true},
		"link through a link":    {[]member{link("a", "."), link("d/l", "../a/../x")}, `"d/l" is a link to "../a/../x", outside`, true},
		"link through deep link": {[]member{{name: "x/y/f"}, link("s", "x/y"), link("l", "s/../../../x")}, `"l" is a link`, true},
		"link of links":          {[]member{link("a", "b/x"), link("b", "a/x")}, `leads through too many others`, true},
		"link without target":    {[]member{link("l", "")}, `"l" is a link without a target`, false},
		"beneath a link":         {[]member{link("d", "e"), {name: "e/"}, {name: "d/f"}}, `"d/f" lies beneath "d", which is a link`, true},
		"directory beneath link": {[]member{link("d", "e"), {name: "d/g/"}}, `"d/g" lies beneath "d", which is a link`, true},
		"beneath a file":         {[]member{{name: "d", content: "x"}, {name: "d/f"}}, `"d/f" lies beneath "d", which is a file`, true},
		"file and directory":     {[]member{{name: "d", content: "x"}, {name: "d/"}}, `"d" is a file and a directory`, true},
		"twice":                  {[]member{{name: "f", content: "1"}, {name: "./f", content: "2"}}, `"./f" is in it twice`, true},
		"file and link":          {[]member{{name: "f", content: "1"}, link("f", "fine")}, `"f" is in it twice`, true},
		"two modes":              {[]member{{name: "d/", mode: 0o700}, {name: "d/", mode: 0o755}}, `"d/" is in it twice, with the modes`, false},
		"hard link out":          {[]member{{name: "h", typ: tar.TypeLink, target: "/etc/shadow"}}, `"h" is a hard link to "/etc/shadow", which is no file before it`, false},
		"hard link up":           {[]member{{name: "h", typ: tar.TypeLink, target: "../x"}}, `"h" is a hard link to "../x"`, false},
		"hard link to later":     {[]member{{name: "h", typ: tar.TypeLink, target: "later"}, {name: "later"}}, `"h" is a hard link to "later"`, false},
		"hard link to directory": {[]member{{name: "d/"}, {name: "h", typ: tar.TypeLink, target: "d"}}, `"h" is a hard link to "d"`, false},
		"the directory itself":   {[]member{link("./", "x")}, `stands for the directory itself`, false},
		"many":                   {[]member{{name: "../1"}, {name: "../2"}, {name: "../3"}, {name: "../4"}, {name: "../5"}, {name: "../6"}}, `"../5" leads out of the directory; and 1 more`, true},
	} {
		packs := map[string][]byte{"tar": tarball(append([]member{ok}, c.members...)...)}
		if c.zip {
			packs["zip"] = zipOf(append([]member{ok}, c.members...)...)
		}
		for form, data := range packs {
			_, err := entriesIn(data, scrolls.Attrs{}, usualBounds)
			var hostile *HostileError
			if !errors.As(err, &hostile) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s as %s: %v, not %s", what, form, err, c.says)
			}
		}
	}
	if _, err := entriesIn(zipOf(ok, member{name: `a\..\b`}), scrolls.Attrs{}, usualBounds); err == nil || !strings.Contains(err.Error(), "backslashes") {
		t.Errorf("a zip with backslashes: %v", err)
	}
}

func TestWhatIsLeftOutMayBeWhatGolemDoesNotUnpack(t *testing.T) {
	data := tarball(member{name: "dev/null", typ: tar.TypeChar}, member{name: "su", mode: 0o4755}, member{name: "f"})
	list, err := entriesIn(data, scrolls.Attrs{"exclude": []any{"dev", "su"}}, usualBounds)
	if err != nil || list.shape() != "/0755 f=0:0644" {
		t.Errorf("%v, %v", list, err)
	}
	if _, err := entriesIn(tarball(member{name: "../x"}, member{name: "f"}), scrolls.Attrs{"exclude": []any{"**"}, "include": []any{"f"}}, usualBounds); err == nil {
		t.Error("a name that leads out is refused whatever is left out")
	}
}

// TestBombsAreBounded: what unpacks to more than its size accounts for is refused, and no
// more of it is read than the bound.
func TestBombsAreBounded(t *testing.T) {
	small := archiveBounds{entries: 50, floor: 1 << 20, ratio: 10}
	zeros := strings.Repeat("\x00", 2<<20)
	var many []member
	for i := range 60 {
		many = append(many, member{name: fmt.Sprint(i)})
	}
	deep := member{name: strings.Repeat("d/", 60) + "f"}
	links := []member{{name: "f", content: strings.Repeat("r", 200<<10)}}
	for i := range 40 {
		links = append(links, member{name: fmt.Sprintf("h%d", i), typ: tar.TypeLink, target: "f"})
	}
	for what, data := range map[string][]byte{
		"gz": squeezed(tarball(member{name: "z", content: zeros}), "gz"), "zst": squeezed(tarball(member{name: "z", content: zeros}), "zst"),
		"xz": squeezed(tarball(member{name: "z", content: zeros}), "xz"), "zip": zipOf(member{name: "z", content: zeros}),
		"two in a zip": zipOf(member{name: "a", content: zeros[:1<<19]}, member{name: "b", content: zeros[:3<<18]}),
		"a hole":       holed(8 << 40), "a small hole": holed(2 << 20),
		"entries": tarball(many...), "directories": tarball(deep), "hard links": tarball(links...), "entries of a zip": zipOf(many...),
	} {
		_, err := entriesIn(data, scrolls.Attrs{}, small)
		var hostile *HostileError
		if !errors.As(err, &hostile) || !strings.Contains(err.Error(), "more than") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := entriesIn(tarball(member{name: "z", content: zeros}), scrolls.Attrs{}, small); err != nil {
		t.Errorf("as large as it unpacks to: %v", err)
	}
}

// holed is an archive of one sparse file that is a hole all over (GNU tar's older form).
func holed(size int64) []byte {
	h := make([]byte, 512)
	copy(h, "hole")
	copy(h[100:], "0000644\x00")
	copy(h[124:], "00000000000\x00") // bytes in the archive
	copy(h[136:], "00000000000\x00")
	h[156] = tar.TypeGNUSparse
	copy(h[257:], "ustar  \x00")
	for _, at := range []int{386, 483} { // where the one piece of no bytes begins, and the file's size
		h[at] = 0x80
		binary.BigEndian.PutUint64(h[at+4:], uint64(size))
	}
	copy(h[398:], "00000000000\x00")
	copy(h[148:], "        ")
	sum := 0
	for _, b := range h {
		sum += int(b)
	}
	copy(h[148:], fmt.Sprintf("%06o\x00 ", sum))
	return append(h, make([]byte, 1024)...)
}

// TestReadingAnArchiveCanBeStopped: nobody waits for the end of a large file.
func TestReadingAnArchiveCanBeStopped(t *testing.T) {
	for what, data := range map[string][]byte{
		"tar": tarball(member{name: "z", content: strings.Repeat("\x00", 1<<20)}), "zip": zipOf(member{name: "z", content: strings.Repeat("\x00", 1<<20)}), "hole": holed(1 << 20),
	} {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		w, err := packed{bytes.NewReader(data), int64(len(data)), "it"}.open(ctx, 1<<30)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.next(); err != nil {
			t.Fatal(err)
		}
		cancel()
		if _, err := io.Copy(io.Discard, w); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestASparseGiantIsRefused: a header can promise more than any disk has.
func TestASparseGiantIsRefused(t *testing.T) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := w.WriteHeader(&tar.Header{Name: "giant", Typeflag: tar.TypeReg, Mode: 0o644, Size: 8 << 40, Format: tar.FormatGNU}); err != nil {
		t.Fatal(err)
	}
	b.Write(make([]byte, 4096))
	if _, err := entriesIn(b.Bytes(), scrolls.Attrs{}, usualBounds); err == nil || !strings.Contains(err.Error(), "ends too early") {
		t.Errorf("a giant without its bytes: %v", err)
	}
}

func TestBrokenArchivesAreErrors(t *testing.T) {
	whole := squeezed(tarball(member{name: "f", content: strings.Repeat("abc", 5000)}), "gz")
	torn := bytes.Clone(whole)
	torn[len(torn)-6] ^= 1
	window := squeezed(tarball(member{name: "f", content: "x"}), "xz")
	huge := bytes.Clone(window)
	for i := 12; i < 30; i++ { // the dictionary's size, behind the filter's id and its length
		if huge[i] == 0x21 && huge[i+1] == 1 {
			huge[i+2] = 40
			break
		}
	}
	encrypted := zipOf(member{name: "f", content: "x"})
	at := bytes.Index(encrypted, []byte("PK\x01\x02"))
	encrypted[at+8] |= 1
	for what, c := range map[string]struct {
		data []byte
		says string
	}{
		"text": {[]byte("hello"), "no archive that golem knows"}, "a longer text": {bytes.Repeat([]byte("hello\n"), 500), "no archive that golem knows"},
		"empty": {nil, "no archive that golem knows"}, "gzip of a text": {squeezed(bytes.Repeat([]byte("hello"), 300), "gz"), "no archive that golem knows"},
		"cut": {whole[:len(whole)/2], "ends too early"}, "torn": {torn, "checksum"}, "no members": {tarball(), "nothing of it"},
		"zip cut": {zipOf(member{name: "f", content: "x"})[:30], "unpack it"}, "xz window": {huge, "of memory"}, "encrypted": {encrypted, "encrypted"},
	} {
		if _, err := entriesIn(c.data, scrolls.Attrs{}, usualBounds); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, not %q", what, err, c.says)
		}
	}
}

// A tar that is cut between two entries looks like a smaller one, but for its missing end.
func TestATarWithoutItsEndIsNotTakenForWhole(t *testing.T) {
	for what, members := range map[string][]member{
		"a file":         {{name: "one", content: "x"}, {name: "two", content: strings.Repeat("abc", 500)}},
		"a whole block":  {{name: "one", content: strings.Repeat("x", 512)}},
		"zeros":          {{name: "one", content: strings.Repeat("\x00", 2048)}},
		"an empty file":  {{name: "one", content: "x"}, {name: "two"}},
		"a directory":    {{name: "one", content: "x"}, {name: "dir/"}},
		"a link":         {{name: "one", content: "x"}, {name: "two", typ: tar.TypeSymlink, target: "one"}},
		"another's name": {{name: "one", content: "x"}, {name: "two", typ: tar.TypeLink, target: "one"}},
		"a long name":    {{name: strings.Repeat("n", 200), content: "x"}},
	} {
		whole := tarball(members...)
		const end = 1024
		open := whole[:len(whole)-end]
		for _, marked := range [][]byte{whole, whole[:len(whole)-end/2], append(bytes.Clone(whole), make([]byte, 8192)...)} {
			if _, err := entriesIn(marked, scrolls.Attrs{}, usualBounds); err != nil {
				t.Errorf("%s, whole: %v", what, err)
			}
		}
		if _, err := entriesIn(open, scrolls.Attrs{}, usualBounds); !errors.Is(err, errUnmarked) {
			t.Errorf("%s, without its end: %v", what, err)
		}
		if _, err := entriesIn(open, scrolls.Attrs{"sha256": fileNode(open).Hash}, usualBounds); err != nil {
			t.Errorf("%s, without its end and with a checksum: %v", what, err)
		}
		if _, err := entriesIn(squeezed(open, "gz"), scrolls.Attrs{}, usualBounds); err != nil {
			t.Errorf("%s, without its end in a gzip that has one: %v", what, err)
		}
	}
}

// suiteArchives are the archives of the conformance suite.
var suiteArchives = [][]byte{
	tarball(member{name: "it", content: "new\n", mode: 0o600}, member{name: "dir/", mode: 0o700}, member{name: "dir/sub/x", content: "x"},
		member{name: "ln", typ: tar.TypeSymlink, target: "dir/sub"}),
	squeezed(tarball(member{name: "dir/", mode: 0o750}, member{name: "dir/it", content: strings.Repeat("large ", 20000)},
		member{name: "other", typ: tar.TypeLink, target: "dir/it"}), "gz"),
	zipOf(member{name: "it", typ: tar.TypeSymlink, target: "dir"}, member{name: "dir/"}, member{name: "found"}),
}

func sampleArchive(t *rapid.T) scrolls.Attrs {
	data := rapid.SampledFrom(suiteArchives).Draw(t, "archive")
	a := scrolls.Attrs{
		"path":   rapid.SampledFrom([]string{"/d", "/d", "/new/place"}).Draw(t, "path"),
		"source": map[string]any{"path": "it.tar", "sha256": fileNode(data).Hash, "size": json.Number(fmt.Sprint(len(data)))},
	}
	if rapid.Bool().Draw(t, "exclude") {
		a["exclude"] = []any{"ln", "other"}
	}
	return a
}

func (b *bench) drawArchives() {
	b.drawFiles()
	for _, data := range suiteArchives {
		if _, err := b.store.Put(data); err != nil {
			b.t.Fatal(err)
		}
	}
}
