package state

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// inlineMax is the size up to which bytes stand in the database itself.
const inlineMax = 64 << 10

// A waiting blob was put, but no committed row names it yet.
type waiting struct {
	size   int64
	data   []byte // nil: it lies beside the database
	synced bool   // what lies beside is on disk
	rowed  bool   // the transaction that is open has its row
}

// beside is the directory of large blobs, PATH.blobs/HH/HASH, and what was put and
// is not recorded yet.
type beside struct {
	dir     string
	o       Options
	waiting map[string]*waiting
}

func (b *beside) file(hash string) string { return blobFile(b.dir, hash) }

func blobFile(dir, hash string) string { return filepath.Join(dir, hash[:2], hash) }

// validHash keeps a hash from naming any other file.
func validHash(hash string) bool {
	raw, err := hex.DecodeString(hash)
	return err == nil && len(raw) == sha256.Size && strings.ToLower(hash) == hash
}

// pending gives back bytes that are not recorded yet.
func (b *beside) pending(hash string) (io.ReadCloser, int64, bool, error) {
	w := b.waiting[hash]
	if w == nil {
		return nil, 0, false, nil
	}
	if w.data != nil {
		return io.NopCloser(bytes.NewReader(w.data)), w.size, true, nil
	}
	f, err := openBeside(b.dir, hash, w.size)
	return f, w.size, true, err
}

// PutBytes puts bytes into the journal and returns their hash. They are on disk when
// the transaction is.
func (tx *Tx) PutBytes(data []byte) (string, error) { return tx.j.PutBytes(data) }

// PutBytes puts bytes into the journal and returns their hash. They are on disk when
// the next transaction is.
func (j *Journal) PutBytes(data []byte) (string, error) {
	sum := sha256.Sum256(data)
	hash := hex.EncodeToString(sum[:])
	have, err := j.has(hash, int64(len(data)))
	if err != nil || have {
		return hash, err
	}
	if len(data) <= inlineMax {
		j.blobs.waiting[hash] = &waiting{size: int64(len(data)), data: append([]byte{}, data...)}
		return hash, nil
	}
	tmp, err := j.blobs.temp()
	if err != nil {
		return "", j.putFailed("", err)
	}
	_, err = tmp.Write(data)
	return hash, j.putFailed("", j.blobs.take(tmp, hash, int64(len(data)), err))
}

// PutFile puts a regular file's bytes into the journal and returns their hash and
// size, never holding a large file in memory: its blocks are shared where the file
// system can. With a want, bytes of any other hash are a *ChangedError and nothing is
// kept. The bytes are on disk after SyncBlobs, or when the next transaction is.
func (j *Journal) PutFile(src *os.File, want string) (hash string, size int64, err error) {
	st, err := src.Stat()
	if err != nil {
		return "", 0, j.putFailed(src.Name(), err)
	}
	if want != "" {
		have, err := j.has(want, st.Size())
		if err != nil {
			return "", 0, j.putFailed(src.Name(), err)
		}
		if have {
			return j.verify(src, want)
		}
	}
	if st.Size() <= inlineMax {
		data, err := io.ReadAll(io.NewSectionReader(src, 0, inlineMax+1))
		if err != nil {
			return "", 0, j.putFailed(src.Name(), err)
		}
		if len(data) <= inlineMax {
			return j.putSmall(src, data, want)
		}
	}
	return j.putLarge(src, want)
}

// verify is PutFile for bytes that the journal has: it only sees whether the file
// still holds them.
func (j *Journal) verify(src *os.File, want string) (string, int64, error) {
	h := sha256.New()
	size, err := io.Copy(h, io.NewSectionReader(src, 0, 1<<62))
	if err != nil {
		return "", 0, j.putFailed(src.Name(), err)
	}
	if have := hex.EncodeToString(h.Sum(nil)); have != want {
		return "", 0, &ChangedError{src.Name(), want, have}
	}
	return want, size, nil
}

func (j *Journal) putSmall(src *os.File, data []byte, want string) (string, int64, error) {
	if want != "" {
		sum := sha256.Sum256(data)
		if have := hex.EncodeToString(sum[:]); have != want {
			return "", 0, &ChangedError{src.Name(), want, have}
		}
	}
	hash, err := j.PutBytes(data)
	return hash, int64(len(data)), err
}

// putLarge copies a file's bytes beside the database, to be synced and named by their hash with
// the next commit.
func (j *Journal) putLarge(src *os.File, want string) (string, int64, error) {
	tmp, err := j.blobs.temp()
	if err != nil {
		return "", 0, j.putFailed(src.Name(), err)
	}
	h := sha256.New()
	var size int64
	if unix.IoctlFileClone(int(tmp.Fd()), int(src.Fd())) == nil {
		size, err = io.Copy(h, tmp)
	} else {
		size, err = io.Copy(io.MultiWriter(h, tmp), io.NewSectionReader(src, 0, 1<<62))
	}
	hash := hex.EncodeToString(h.Sum(nil))
	if err == nil && want != "" && hash != want {
		err = &ChangedError{src.Name(), want, hash}
	}
	if err == nil && size <= inlineMax {
		// It shrank while it was read; where a blob lies follows from its size alone.
		data := make([]byte, size)
		if _, err = tmp.ReadAt(data, 0); err == nil {
			hash, err = j.PutBytes(data)
		}
		return hash, size, j.putFailed(src.Name(), errors.Join(err, tmp.Close(), os.Remove(tmp.Name())))
	}
	return hash, size, j.putFailed(src.Name(), j.blobs.take(tmp, hash, size, err))
}

func (j *Journal) putFailed(name string, err error) error {
	var changed *ChangedError
	if err == nil || errors.As(err, &changed) {
		return err
	}
	return explain(j.path, fmt.Errorf("keep %s in the journal: %w", cmp.Or(name, "bytes"), err))
}

// has reports whether the bytes are put already, and whole as far as sizes tell.
func (j *Journal) has(hash string, size int64) (bool, error) {
	if j.blobs.waiting[hash] != nil {
		return true, nil
	}
	there, err := j.c.number("SELECT 1 FROM blobs WHERE hash = ?", hash)
	if err != nil || there == 0 {
		return false, err
	}
	if size <= inlineMax {
		return true, nil
	}
	st, err := os.Lstat(j.blobs.file(hash))
	return err == nil && st.Size() == size, nil
}

func (b *beside) temp() (*os.File, error) {
	if err := b.o.fault("blob write"); err != nil {
		return nil, err
	}
	err := makeDir(b.dir, 0o700)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	f, err := os.CreateTemp(b.dir, "tmp-")
	if err != nil {
		return nil, err
	}
	return f, private(f)
}

// take gives a temporary file its name, or removes it if err says that it is not
// whole.
func (b *beside) take(tmp *os.File, hash string, size int64, err error) error {
	err = errors.Join(err, tmp.Close())
	if err == nil {
		err = b.o.fault("blob rename")
	}
	if err == nil {
		dir := filepath.Join(b.dir, hash[:2])
		if err = os.Mkdir(dir, 0o700); err == nil {
			err = os.Chmod(dir, 0o700) // whatever the umask was
		} else if errors.Is(err, fs.ErrExist) {
			err = nil
		}
	}
	if err == nil {
		err = os.Rename(tmp.Name(), b.file(hash))
	}
	if err != nil {
		_ = os.Remove(tmp.Name())
		return err
	}
	b.waiting[hash] = &waiting{size: size}
	return nil
}

// SyncBlobs makes everything that was put beside the database durable.
func (j *Journal) SyncBlobs() error {
	if err := j.blobs.sync(); err != nil {
		return explain(j.path, fmt.Errorf("keep bytes in the journal: %w", err))
	}
	return nil
}

func (b *beside) sync() error {
	var names []string
	for hash, w := range b.waiting {
		if w.data == nil && !w.synced {
			names = append(names, hash)
		}
	}
	if len(names) == 0 {
		return nil
	}
	if err := b.o.fault("blob sync"); err != nil {
		return err
	}
	if err := b.flush(names); err != nil {
		return err
	}
	for _, hash := range names {
		b.waiting[hash].synced = true
	}
	return nil
}

// flush syncs one blob by itself, so as not to wait for all else that is dirty on
// the file system, and many at once.
func (b *beside) flush(names []string) error {
	if len(names) > 1 {
		f, err := os.Open(b.dir)
		if err != nil {
			return err
		}
		defer f.Close()
		return unix.Syncfs(int(f.Fd()))
	}
	file := b.file(names[0])
	for _, name := range []string{file, filepath.Dir(file), b.dir} {
		if err := syncPath(name); err != nil {
			return err
		}
	}
	return nil
}

// recorded forgets what the committed transaction has rows for.
func (b *beside) recorded() {
	for hash, w := range b.waiting {
		if w.rowed {
			delete(b.waiting, hash)
		}
	}
}

// forgotten notes that the transaction's rows are gone.
func (b *beside) forgotten() {
	for _, w := range b.waiting {
		w.rowed = false
	}
}

// sweep removes what was half written when a run died.
func (b *beside) sweep() error {
	names, err := filepath.Glob(filepath.Join(strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(b.dir), "tmp-*"))
	if err != nil {
		return fmt.Errorf("remove leftover: %w", err)
	}
	for _, name := range names {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove leftover: %w", err)
		}
	}
	return nil
}

// rows writes a row for each waiting blob that has none yet.
func (tx *Tx) rows() error {
	for hash, w := range tx.j.blobs.waiting {
		if err := tx.row(hash, w); err != nil {
			return err
		}
	}
	return nil
}

// row writes one waiting blob's row.
func (tx *Tx) row(hash string, w *waiting) error {
	if w.rowed {
		return nil
	}
	there, err := tx.c.number("SELECT 1 FROM blobs WHERE hash = ?", hash)
	if err != nil {
		return err
	}
	if there == 0 {
		var body any // NULL: beside
		if w.data != nil {
			body = w.data
		}
		if _, err := tx.c.exec("INSERT INTO blobs (hash, size, body) VALUES (?, ?, ?)", hash, w.size, body); err != nil {
			return err
		}
	}
	w.rowed = true
	return nil
}

// settleBlobs makes what was put part of the transaction; what lies beside is on
// disk before the rows that name it are.
func (tx *Tx) settleBlobs() error {
	if err := tx.rows(); err != nil {
		return fmt.Errorf("journal bytes: %w", err)
	}
	return tx.j.SyncBlobs()
}

// needBlobs refuses bodies that name bytes which the journal does not have.
func (tx *Tx) needBlobs(what string, bodies ...json.RawMessage) error {
	for _, body := range bodies {
		for _, hash := range blobsIn(body) {
			if err := tx.needBlob(hash); err != nil {
				return fmt.Errorf("%s needs bytes: %w", what, err)
			}
		}
	}
	return nil
}

func (tx *Tx) needBlob(hash string) error {
	if w := tx.j.blobs.waiting[hash]; w != nil {
		return tx.row(hash, w)
	}
	there, err := tx.c.number("SELECT 1 FROM blobs WHERE hash = ?", hash)
	if err == nil && there == 0 {
		err = &BlobError{hash, "it was never put"}
	}
	return err
}
