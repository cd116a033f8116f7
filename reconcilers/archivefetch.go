package reconcilers

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"

	"golem/scrolls"
)

// An archiveShelf keeps what a run has read of archives, so that each is read through
// once, and what it has downloaded, until the journal has it.
type archiveShelf struct {
	mu    sync.Mutex
	lists map[scrolls.ContentID]*archiveList
	got   map[string]string // a download by its SHA-256
}

// clear removes what was downloaded and did not come to the journal.
func (s *archiveShelf) clear() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error
	for _, file := range s.got {
		err = errors.Join(err, os.RemoveAll(filepath.Dir(file)))
	}
	clear(s.got)
	return err
}

// maxDownload bounds what is downloaded for one archive.
const maxDownload = 64 << 30

// errUnseen says that an archive is not here yet.
var errUnseen = errors.New("it is not downloaded yet")

// An openArchive is an archive whose bytes can be read.
type openArchive struct {
	packed
	io.Closer
}

// archiveFile is where a glyph's archive lies: the file that the scroll names, or a download
// of this run; "" for neither.
func (w *World) archiveFile(g *scrolls.Glyph) string {
	if file := g.Files["source"]; file != "" {
		return file
	}
	w.Host.archives.mu.Lock()
	defer w.Host.archives.mu.Unlock()
	return w.Host.archives.got[archiveSum(g.Attrs)]
}

// openArchive opens a glyph's archive, from wherever its bytes are: the file that the
// scroll names, a download, or the journal.
func (w *World) openArchive(g *scrolls.Glyph) (*openArchive, error) {
	if file := w.archiveFile(g); file != "" {
		return openPacked(file, shownSource(g.Attrs))
	}
	return w.keptArchive(g)
}

func openPacked(file, from string) (*openArchive, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", from, bare(err))
	}
	st, err := f.Stat()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("read %s: %w", from, bare(err)), f.Close())
	}
	return &openArchive{packed{f, st.Size(), from}, f}, nil
}

// keptArchive opens a glyph's archive as the journal has it.
func (w *World) keptArchive(g *scrolls.Glyph) (*openArchive, error) {
	from := shownSource(g.Attrs)
	r, size, err := w.Blobs.OpenBlob(archiveSum(g.Attrs))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w: %w", from, errUnseen, err)
	}
	if at, ok := r.(io.ReaderAt); ok {
		return &openArchive{packed{at, size, from}, r}, nil
	}
	data, err := io.ReadAll(r) // one that is small enough to stand in the database
	if err := errors.Join(err, r.Close()); err != nil {
		return nil, fmt.Errorf("read %s: %w", from, err)
	}
	return &openArchive{packed{bytes.NewReader(data), size, from}, io.NopCloser(nil)}, nil
}

// unpackList lists what a glyph's archive holds, checked. It is errUnseen for one that has to
// be downloaded first, which only a world that acts does.
func (w *World) unpackList(ctx context.Context, g *scrolls.Glyph) (*archiveList, error) {
	shelf, id := &w.Host.archives, CID(g)
	shelf.mu.Lock()
	list := shelf.lists[id]
	shelf.mu.Unlock()
	if list != nil {
		return list, nil
	}
	o, err := w.openArchive(g)
	if errors.Is(err, errUnseen) && w.Acts {
		if err = w.download(ctx, g); err == nil {
			o, err = w.openArchive(g)
		}
	}
	if err != nil {
		return nil, err
	}
	defer o.Close()
	defer w.Host.busy("read", archiveName(g.Attrs))()
	if err := o.verify(ctx, archiveSum(g.Attrs)); err != nil {
		return nil, err
	}
	if list, err = o.list(ctx, g.Attrs, usualBounds); err != nil {
		return nil, err
	}
	shelf.mu.Lock()
	defer shelf.mu.Unlock()
	if shelf.lists == nil {
		shelf.lists = map[scrolls.ContentID]*archiveList{}
	}
	shelf.lists[id] = list
	return list, nil
}

// Refresh implements Refresher: what is behind a URL is downloaded before an apply plans, so
// that all of it is checked before anything is touched. What cannot be had is its leaf's
// failure, and no other's.
func (unpackings) Refresh(ctx context.Context, w *World, declared, _ []*scrolls.Glyph) error {
	for _, g := range declared {
		if _, remote := g.Attrs["source"].(string); !remote || g.Kind != archiveKind.Name {
			continue
		}
		o, err := w.openArchive(g)
		if err == nil {
			err = o.Close()
		} else if errors.Is(err, errUnseen) {
			err = w.download(ctx, g)
		}
		if err != nil && ctx.Err() != nil {
			return err
		}
	}
	return nil
}

// verify sees to it that the bytes are the ones that are meant.
func (p packed) verify(ctx context.Context, sum string) error {
	h := sha256.New()
	all := &bounded{ctx, io.NewSectionReader(p, 0, p.size), p.size + 1, p.size}
	if _, err := io.Copy(h, all); err != nil {
		return fmt.Errorf("read %s: %w", p.from, err)
	}
	if hex.EncodeToString(h.Sum(nil)) != sum {
		return fmt.Errorf("read %s: its bytes changed since the scroll was read: %w", p.from, ErrMoved)
	}
	return nil
}

// busy tells what golem itself is at, where that may take a while.
func (h *Host) busy(argv ...string) (ended func()) {
	if h.Watch == nil {
		return func() {}
	}
	return h.Watch(Command{Argv: argv})
}

// A DownloadError says why an archive could not be had. Nothing was touched for it.
type DownloadError struct {
	From string
	Err  error
	// Final says that trying again brings nothing else.
	Final bool
}

func (e *DownloadError) Error() string { return fmt.Sprintf("download %s: %v", e.From, e.Err) }
func (e *DownloadError) Unwrap() error { return e.Err }

// Hint says how to do without the network.
func (e *DownloadError) Hint() string {
	if e.Final {
		return "nothing of it was unpacked; sha256 must be that of the very file behind the URL"
	}
	return "nothing was touched; the archive can also lie beside the scroll, as a file"
}

// download brings a glyph's archive to a file of golem's own, and proves that it is the
// one that is meant.
func (w *World) download(ctx context.Context, g *scrolls.Glyph) error {
	link, remote := g.Attrs["source"].(string)
	from, sum := shownSource(g.Attrs), archiveSum(g.Attrs)
	if !remote {
		return fmt.Errorf("read %s: neither its file nor the journal has it", from)
	}
	dir, err := w.Host.scratchDir("archive")
	if err != nil {
		return err
	}
	file := filepath.Join(dir, "archive")
	if err := w.fetch(ctx, link, file, sum); err != nil {
		var down *DownloadError
		if errors.As(err, &down) {
			down.From = from
		}
		return errors.Join(err, os.RemoveAll(dir))
	}
	shelf := &w.Host.archives
	shelf.mu.Lock()
	defer shelf.mu.Unlock()
	if shelf.got == nil {
		shelf.got = map[string]string{}
	}
	shelf.got[sum] = file
	return nil
}

// fetch downloads what a link leads to into a file, and compares its hash with the wanted one.
func (w *World) fetch(ctx context.Context, link, file, sum string) error {
	ctx, cancel := context.WithTimeout(ctx, w.Timeout)
	defer cancel()
	name := filepath.Base(link)
	if u, err := url.Parse(link); err == nil {
		name = filepath.Base(u.Path)
	}
	defer w.Host.busy("download", name)()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, link, nil)
	if err != nil {
		return &DownloadError{Err: unnamed(err), Final: true}
	}
	client := &http.Client{CheckRedirect: onlyHTTPS}
	defer client.CloseIdleConnections()
	answer, err := client.Do(req)
	if err != nil {
		return &DownloadError{Err: unnamed(err), Final: errors.Is(err, errPlain)}
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		gone := answer.StatusCode >= 400 && answer.StatusCode < 500 && answer.StatusCode != http.StatusTooManyRequests && answer.StatusCode != http.StatusRequestTimeout
		return &DownloadError{Err: fmt.Errorf("the server answers %s", answer.Status), Final: gone}
	}
	if answer.ContentLength > 0 {
		defer w.Host.busy("download", name, bytesText(answer.ContentLength))()
	}
	if err := roomFor(filepath.Dir(file), answer.ContentLength); err != nil {
		return &DownloadError{Err: err, Final: true}
	}
	return write(file, answer.Body, sum)
}

var errPlain = errors.New("it redirects to what is not https")

// onlyHTTPS lets a download follow only where nobody can listen in or answer instead.
func onlyHTTPS(req *http.Request, via []*http.Request) error {
	switch {
	case req.URL.Scheme != "https":
		return errPlain
	case len(via) >= 10:
		return errors.New("it redirects too often")
	}
	return nil
}

// unnamed takes the URL off an error of net/http, which is told without its password.
func unnamed(err error) error {
	var ue *url.Error
	if errors.As(err, &ue) {
		return ue.Err
	}
	return err
}

// roomFor refuses a download that its file system has no room for.
func roomFor(dir string, size int64) error {
	if size > maxDownload {
		return fmt.Errorf("it has %s, more than golem downloads", bytesText(size))
	}
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) != nil {
		return nil // nothing known is no reason to refuse
	}
	if free := int64(st.Bavail) * st.Bsize; free < size {
		return fmt.Errorf("it has %s, and only %s are free in %s", bytesText(size), bytesText(free), dir)
	}
	return nil
}

// write brings a download to its file; one with another checksum is refused.
func write(file string, body io.Reader, sum string) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("make a file for a download: %w", err)
	}
	h := sha256.New()
	n, err := io.Copy(io.MultiWriter(f, h), io.LimitReader(body, maxDownload+1))
	if err := errors.Join(err, f.Close()); err != nil {
		return &DownloadError{Err: bare(err), Final: errors.Is(err, unix.ENOSPC)}
	}
	if has := hex.EncodeToString(h.Sum(nil)); has != sum {
		return &DownloadError{Err: fmt.Errorf("what came (%s) has the sha256 %s, not %s", bytesText(n), has, sum), Final: true}
	}
	return nil
}
