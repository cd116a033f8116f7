package reconcilers

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"
)

// A packed is an archive's bytes.
type packed struct {
	io.ReaderAt
	size int64
	from string // where they are, for people
}

// A packedEntry is one entry as an archive has it, nothing checked.
type packedEntry struct {
	name   string
	typ    Type   // Special for what golem does not unpack
	what   string // of a Special
	hard   bool   // another name of the file that target names
	target string // of a link
	mode   int    // the twelve bits; 0 where the archive has none
	size   int64
	mtime  int64 // nanoseconds; 0: none
}

// A walker goes through an archive's entries in order. Read reads the present one.
type walker interface {
	next() (packedEntry, error) // io.EOF behind the last
	io.Reader
	io.Closer
}

// A boundError says that an archive unpacks to more than it may.
type boundError struct{ most int64 }

func (e *boundError) Error() string {
	return fmt.Sprintf("it unpacks to more than %s, which its own size does not account for", bytesText(e.most))
}

// A bounded is a reader that gives no more than it may, and nothing once nobody waits
// for it.
type bounded struct {
	ctx        context.Context
	r          io.Reader
	left, most int64
}

func (b *bounded) Read(p []byte) (int, error) {
	if err := b.ctx.Err(); err != nil {
		return 0, err
	}
	if b.left <= 0 {
		return 0, &boundError{b.most}
	}
	n, err := b.r.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

// maxWindow bounds the memory that unpacking one archive takes.
const maxWindow = 256 << 20

var errNoArchive = errors.New("it is no archive that golem knows: tar, tar.gz, tar.zst, tar.xz or zip")

// open begins to go through an archive; most is how many bytes may come out of it.
func (p packed) open(ctx context.Context, most int64) (walker, error) {
	head := make([]byte, 512)
	n, err := p.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read %s: %w", p.from, bare(err))
	}
	head = head[:n]
	if bytes.HasPrefix(head, []byte("PK\x03\x04")) || bytes.HasPrefix(head, []byte("PK\x05\x06")) {
		return p.openZip(ctx, most)
	}
	var src io.Reader = bufio.NewReaderSize(io.NewSectionReader(p, 0, p.size), 1<<18)
	end, bare := func() {}, false
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		src, err = gzip.NewReader(src)
	case bytes.HasPrefix(head, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		var z *zstd.Decoder
		if z, err = zstd.NewReader(src, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderMaxMemory(2*maxWindow)); err == nil {
			src, end = z, z.Close
		}
	case bytes.HasPrefix(head, []byte("\xfd7zXZ\x00")):
		if err = checkWindow(head); err == nil {
			src, err = xz.NewReader(src)
		}
	case len(head) < 512:
		return nil, errNoArchive
	default:
		bare = true
	}
	if err != nil {
		return nil, fmt.Errorf("unpack it: %w", err)
	}
	in := &bounded{ctx, src, most, most}
	r := tar.NewReader(in)
	return &tarWalker{r: r, src: in, out: &bounded{ctx, r, most, most}, end: end, bare: bare}, nil
}

// checkWindow refuses an xz stream that asks for more memory than it may. (Later blocks
// may ask for more, but memory is taken only as far as it is filled.)
func checkWindow(head []byte) error {
	const header = 12 // of the stream; then the block's: size, flags, two optional sizes, filters
	if len(head) < header+3 {
		return io.ErrUnexpectedEOF
	}
	block := head[header:]
	at := 2
	for bit := byte(0x40); bit != 0; bit <<= 1 { // 0x40: packed size, 0x80: unpacked size
		if block[1]&bit == 0 {
			continue
		}
		for at < len(block) && block[at]&0x80 != 0 {
			at++
		}
		at++
	}
	if at+2 >= len(block) || block[at] != 0x21 || block[1]&3 != 0 {
		return nil // of filters that the decoder does not know, it says so itself
	}
	if bits := block[at+2]; bits > 32 { // 2^(bits/2+12) bytes: 32 are 256 MiB
		return fmt.Errorf("it asks for more than %s of memory", bytesText(maxWindow))
	}
	return nil
}

// gnuLabel is an entry that only names the whole archive (tar --label).
const gnuLabel = 'V'

type tarWalker struct {
	r   *tar.Reader
	src *bounded // what it reads
	out *bounded // what comes out of its files: the holes of a sparse one are in no archive
	end func()
	one bool // an entry was read

	bare bool  // it is not compressed, which would tell that it is whole
	ends int64 // where the present entry ends; -1 where that is not known
	open bool  // it ended without the mark at a tar's end
}

// errUnmarked is for a tar of which nobody says that it is whole.
var errUnmarked = errors.New("it lacks the mark at the end of a tar, so it may have been cut short; if it is whole, write its sha256")

func (t *tarWalker) Read(p []byte) (int, error) { return t.out.Read(p) }

func (t *tarWalker) Close() error {
	t.end()
	return nil
}

func (t *tarWalker) next() (packedEntry, error) {
	for {
		h, err := t.r.Next()
		if errors.Is(err, tar.ErrHeader) && !t.one {
			return packedEntry{}, errNoArchive
		}
		if errors.Is(err, io.EOF) {
			t.open = t.bare && t.ends >= 0 && t.src.most-t.src.left <= t.ends
			return packedEntry{}, t.drain()
		}
		if err != nil {
			return packedEntry{}, err
		}
		t.one, t.ends = true, endOf(h, t.src.most-t.src.left)
		if h.Typeflag != tar.TypeXGlobalHeader && h.Typeflag != gnuLabel {
			return tarEntry(h), nil
		}
	}
}

// endOf is where an entry ends whose bytes begin at a place; -1 where its header does not say.
func endOf(h *tar.Header, at int64) int64 {
	const block = 512
	switch h.Typeflag {
	case tar.TypeLink, tar.TypeSymlink, tar.TypeChar, tar.TypeBlock, tar.TypeDir, tar.TypeFifo:
		return at // a size means nothing
	case tar.TypeGNUSparse:
		return -1 // its size is that of the file with its holes
	}
	for name := range h.PAXRecords {
		if strings.HasPrefix(name, "GNU.sparse.") {
			return -1
		}
	}
	return at + (h.Size+block-1)/block*block
}

// drain reads what is behind the last entry, where the stream's own checksum is. It
// returns io.EOF if that is right.
func (t *tarWalker) drain() error {
	_, err := io.Copy(io.Discard, t.src)
	if err == nil || errors.Is(err, gzip.ErrHeader) { // what follows a whole stream does not matter
		return io.EOF
	}
	return err
}

func tarEntry(h *tar.Header) packedEntry {
	e := packedEntry{name: h.Name, mode: int(h.Mode & 0o7777), size: h.Size, target: h.Linkname, mtime: stampOf(h.ModTime)}
	switch h.Typeflag {
	case tar.TypeReg, tar.TypeCont, tar.TypeGNUSparse:
		e.typ = File
	case tar.TypeDir:
		e.typ = Dir
	case tar.TypeSymlink:
		e.typ = Link
	case tar.TypeLink:
		e.typ, e.hard = File, true
	case tar.TypeChar, tar.TypeBlock:
		e.typ, e.what = Special, "a device"
	case tar.TypeFifo:
		e.typ, e.what = Special, "a pipe"
	default:
		e.typ, e.what = Special, fmt.Sprintf("of the unknown type %q", h.Typeflag)
	}
	return e
}

// stampOf is a time as a Node has it; 0 for one that no file system keeps.
func stampOf(t time.Time) int64 {
	if s := t.Unix(); s <= 0 || s > 1<<33 {
		return 0
	}
	return t.UnixNano()
}

type zipWalker struct {
	files []*zip.File
	at    int
	r     io.ReadCloser
	in    *bounded
}

func (p packed) openZip(ctx context.Context, most int64) (walker, error) {
	z, err := zip.NewReader(p, p.size)
	if err != nil {
		return nil, fmt.Errorf("unpack it: %w", err)
	}
	return &zipWalker{files: z.File, at: -1, in: &bounded{ctx, nil, most, most}}, nil
}

func (z *zipWalker) Close() error {
	if z.r == nil {
		return nil
	}
	r := z.r
	z.r = nil
	return r.Close()
}

func (z *zipWalker) next() (packedEntry, error) {
	if err := z.Close(); err != nil {
		return packedEntry{}, err
	}
	if z.at++; z.at >= len(z.files) {
		return packedEntry{}, io.EOF
	}
	f := z.files[z.at]
	e := packedEntry{name: f.Name, size: int64(min(f.UncompressedSize64, 1<<62)), typ: File, mtime: stampOf(f.Modified)}
	const unix, darwin = 3, 19 // who made it (APPNOTE.TXT 4.4.2)
	made := f.CreatorVersion >> 8
	mode := f.Mode()
	if made == unix || made == darwin {
		e.mode = bitsOf(mode)
	}
	switch {
	case f.Flags&1 != 0:
		e.typ, e.what = Special, "encrypted"
	case strings.Contains(f.Name, `\`):
		e.typ, e.what = Special, "named with backslashes for slashes"
	case strings.HasSuffix(f.Name, "/") || mode.IsDir():
		e.typ = Dir
	case made != unix && made != darwin, mode.IsRegular():
	case mode&fs.ModeSymlink != 0:
		target, err := io.ReadAll(io.LimitReader(z, maxTarget+1))
		if err != nil {
			return packedEntry{}, fmt.Errorf("read the link %s: %w", quote(f.Name), err)
		}
		e.typ, e.target = Link, string(target)
	case mode&fs.ModeNamedPipe != 0:
		e.typ, e.what = Special, "a pipe"
	case mode&fs.ModeSocket != 0:
		e.typ, e.what = Special, "a socket"
	default:
		e.typ, e.what = Special, "a device"
	}
	return e, nil
}

func bitsOf(mode fs.FileMode) int {
	bits := int(mode.Perm())
	for of, bit := range map[fs.FileMode]int{fs.ModeSetuid: 0o4000, fs.ModeSetgid: 0o2000, fs.ModeSticky: 0o1000} {
		if mode&of != 0 {
			bits |= bit
		}
	}
	return bits
}

func (z *zipWalker) Read(p []byte) (int, error) {
	if z.r == nil {
		r, err := z.files[z.at].Open()
		if err != nil {
			return 0, err
		}
		z.r = r
		z.in.r = r
	}
	return z.in.Read(p)
}
