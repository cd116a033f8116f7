package state

import (
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"golem/scrolls"
)

// A Level says how bad a finding is.
type Level string

// Damage loses something that an undo may need; litter only takes up room.
const (
	Damage Level = "damage"
	Litter Level = "litter"
)

// A Finding is one thing that Check found wrong.
type Finding struct {
	Level  Level
	What   string // what it is about: a table and row, a blob
	Detail string
}

// A checker collects findings. An error means that the check itself could not go on.
type checker struct {
	c        *conn
	dir      string // of the blobs beside
	findings []Finding
	blobs    map[string]bool // that have a row
}

func (k *checker) add(level Level, what, format string, args ...any) {
	k.findings = append(k.findings, Finding{level, what, fmt.Sprintf(format, args...)})
}

// Check verifies the whole journal: the database's pages, its schema, every blob's
// hash, everything that one row says of another, and that the applied set is what the
// steps add up to. Damage that keeps it from going on is a finding too.
func (s *store) Check() (findings []Finding, err error) {
	err = s.with(func(c *conn) error {
		findings = nil
		if c == nil {
			return nil
		}
		k := &checker{c: c, dir: s.path + ".blobs", blobs: map[string]bool{}}
		for _, check := range []func() error{k.pages, k.schema, k.inline, k.beside, k.glyphs, k.bodies, k.applied} {
			err := check()
			var damaged *DamagedError
			if errors.As(err, &damaged) {
				k.add(Damage, "journal", "%s", damaged.What)
				continue
			}
			if err != nil {
				return err
			}
		}
		findings = k.findings
		return nil
	})
	return findings, err
}

func (k *checker) pages() error {
	err := k.c.query(func(scan scanner) error {
		var line string
		if err := scan(&line); err != nil {
			return err
		}
		if line != "ok" {
			k.add(Damage, "pages", "%s", line)
		}
		return nil
	}, "PRAGMA integrity_check")
	if err != nil {
		return err
	}
	return k.c.query(func(scan scanner) error {
		var table, parent string
		var row sql.NullInt64
		var fk int
		if err := scan(&table, &row, &parent, &fk); err != nil {
			return err
		}
		k.add(Damage, fmt.Sprintf("%s %d", table, row.Int64), "it refers to a row of %s that is missing", parent)
		return nil
	}, "PRAGMA foreign_key_check")
}

// schema compares the journal's tables and triggers with those of a new journal.
func (k *checker) schema() error {
	fresh, err := connect(k.c.path, ":memory:", "")
	if err != nil {
		return err
	}
	defer fresh.close()
	if err := run(fresh, migrations, 0); err != nil {
		return err
	}
	want, err := schemaOf(fresh)
	if err != nil {
		return err
	}
	have, err := schemaOf(k.c)
	if err != nil {
		return err
	}
	for name, sql := range want {
		switch {
		case have[name] == "":
			k.add(Damage, "schema", "%s is missing", name)
		case have[name] != sql:
			k.add(Damage, "schema", "%s is not as golem made it", name)
		}
	}
	for name := range have {
		if want[name] == "" {
			k.add(Litter, "schema", "%s is not golem's", name)
		}
	}
	return nil
}

func schemaOf(c *conn) (map[string]string, error) {
	all := map[string]string{}
	err := c.query(func(scan scanner) error {
		var kind, name, sql string
		err := scan(&kind, &name, &sql)
		all[kind+" "+name] = sql
		return err
	}, "SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'")
	return all, err
}

// inline checks the blobs in the database, and those beside that it names.
func (k *checker) inline() error {
	return k.c.query(func(scan scanner) error {
		var hash string
		var size int64
		var body []byte
		var inline bool
		if err := scan(&hash, &size, &inline, &body); err != nil {
			return err
		}
		k.blobs[hash] = true
		err := k.blob(hash, size, inline, body)
		var blob *BlobError
		if errors.As(err, &blob) {
			k.add(Damage, "blob "+hash, "%s", blob.Why)
			return nil
		}
		return err
	}, "SELECT hash, size, body IS NOT NULL, body FROM blobs ORDER BY hash")
}

func (k *checker) blob(hash string, size int64, inline bool, body []byte) error {
	if !validHash(hash) {
		return &BlobError{hash, "it is not a hash"}
	}
	if inline {
		return checkBlob(hash, size, body)
	}
	f, err := openBeside(k.dir, hash, size)
	if err != nil {
		return err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return fmt.Errorf("read blob: %w", err)
	}
	if hex.EncodeToString(h.Sum(nil)) != hash {
		return &BlobError{hash, "its bytes are not those that were put"}
	}
	return nil
}

// beside looks for files that no row names.
func (k *checker) beside() error {
	err := filepath.WalkDir(k.dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		hash := e.Name()
		if !k.blobs[hash] || path != blobFile(k.dir, hash) {
			k.add(Litter, "file "+path, "no blob of the journal lies there")
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil && !errors.Is(err, os.ErrPermission) {
		return fmt.Errorf("check blobs: %w", err)
	}
	return err
}

// glyphs checks each glyph against its digest, and that the local files that those in
// force or in a revision stand for are blobs.
func (k *checker) glyphs() error {
	inForce, err := k.inForce()
	if err != nil {
		return err
	}
	return k.c.query(func(scan scanner) error {
		var id int64
		var digest string
		var body []byte
		if err := scan(&id, &digest, &body); err != nil {
			return err
		}
		what := fmt.Sprintf("glyph %d", id)
		if sum := sha256.Sum256(body); hex.EncodeToString(sum[:]) != digest {
			k.add(Damage, what, "it is not what was stored")
		}
		g, err := scrolls.UnmarshalStored(body)
		if err != nil {
			k.add(Damage, what, "it cannot be decoded")
			return nil
		}
		if inForce[id] {
			k.need(fmt.Sprintf("%s, %s,", what, g.Key), fileRefs(g))
		}
		return nil
	}, "SELECT id, digest, body FROM glyphs ORDER BY id")
}

// inForce returns the glyphs that are applied or that a revision declares.
func (k *checker) inForce() (map[int64]bool, error) {
	ids := map[int64]bool{}
	err := k.c.query(func(scan scanner) error {
		var id int64
		err := scan(&id)
		ids[id] = true
		return err
	}, "SELECT glyph FROM applied")
	if err != nil {
		return nil, err
	}
	return ids, k.c.query(func(scan scanner) error {
		var id int64
		var body []byte
		if err := scan(&id, &body); err != nil {
			return err
		}
		var declared []declaredBody
		if err := json.Unmarshal(body, &declared); err != nil {
			k.add(Damage, fmt.Sprintf("revision %d", id), "what it declares cannot be decoded")
		}
		for _, d := range declared {
			for _, g := range slices.Concat(d.Glyphs, d.Checks) {
				ids[g] = true
				if there, err := k.c.number("SELECT 1 FROM glyphs WHERE id = ?", g); err != nil {
					return err
				} else if there == 0 {
					k.add(Damage, fmt.Sprintf("revision %d", id), "it refers to glyph %d, which is missing", g)
				}
			}
		}
		return nil
	}, "SELECT id, declared FROM revisions")
}

func (k *checker) need(what string, hashes []string) {
	for _, hash := range hashes {
		if !k.blobs[hash] {
			k.add(Damage, what, "it refers to blob %s, which is missing", hash)
		}
	}
}

// jsonColumns are the columns that hold bodies, with what names their row.
var jsonColumns = []struct{ what, query string }{
	{"record", "SELECT sort || ':' || resource, body, 1 FROM records"},
	{"ledger", "SELECT sort || ':' || resource, body, 0 FROM ledger"},
	{"kept", "SELECT id, node, 0 FROM kept"},
	{"step", "SELECT id, before, 1 FROM steps"},
	{"step", "SELECT id, after, 1 FROM steps"},
	{"step", "SELECT id, inverse, 0 FROM steps"},
	{"step", "SELECT id, expect, 0 FROM steps"},
	{"step", "SELECT id, ledger, 0 FROM steps"},
	{"step", "SELECT step, amend, 0 FROM step_ends"},
	{"step", "SELECT step, amend ->> 'record', 1 FROM step_ends WHERE json_valid(amend)"},
	{"leaf end", "SELECT id, body, 0 FROM leaf_ends"},
	{"revision", "SELECT id, leaves, 0 FROM revisions"},
	{"revision", "SELECT id, counts, 0 FROM revisions"},
	{"due", "SELECT name, body, 0 FROM due"},
	{"pending", "SELECT id, body, 0 FROM pending"},
}

// bodies checks that every stored body is JSON, and that the blobs, glyphs and
// lineages that it refers to are there.
func (k *checker) bodies() error {
	d, err := newDecoder(k.c)
	if err != nil {
		return err
	}
	for _, col := range jsonColumns {
		err := k.c.query(func(scan scanner) error {
			var row string
			var body []byte
			var record bool
			if err := scan(&row, &body, &record); err != nil {
				return err
			}
			k.body(d, col.what+" "+row, body, record)
			return nil
		}, col.query)
		if err != nil {
			return err
		}
	}
	return nil
}

func (k *checker) body(d *decoder, what string, body []byte, record bool) {
	if body == nil {
		return
	}
	if !json.Valid(body) {
		k.add(Damage, what, "it cannot be decoded")
		return
	}
	k.need(what, blobsIn(body))
	if !record || string(body) == "null" {
		return
	}
	if _, err := d.record("", what, body); err != nil {
		k.add(Damage, what, "%s", strings.TrimPrefix(because(err), "the record of "))
	}
}

func because(err error) string {
	var damaged *DamagedError
	if errors.As(err, &damaged) {
		return damaged.What
	}
	return err.Error()
}

// applied compares the applied set with what the steps add up to.
func (k *checker) applied() error {
	want, err := fold(k.c, "")
	if err != nil {
		return err
	}
	have := map[scrolls.Key]appliedRow{}
	err = k.c.query(func(scan scanner) error {
		var r appliedRow
		err := scan(&r.key, &r.lineage, &r.leaf, &r.glyph, &r.sort, &r.resource, &r.step, &r.position, &r.revision, &r.changed)
		have[r.key] = r
		return err
	}, "SELECT key, lineage, leaf, glyph, sort, resource, step, position, revision, changed FROM applied")
	if err != nil {
		return err
	}
	var wrong []string
	for key, r := range want {
		if have[key] != r {
			wrong = append(wrong, string(key))
		}
	}
	for key := range have {
		if _, ok := want[key]; !ok {
			wrong = append(wrong, string(key))
		}
	}
	sort.Strings(wrong)
	for _, key := range wrong {
		k.add(Damage, "applied "+key, "it is not what the steps add up to")
	}
	return nil
}
