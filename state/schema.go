package state

import (
	"fmt"
	"strings"
)

// applicationID marks the file as golem's in the database header ("golm").
const applicationID = 0x676f6c6d

// A migration brings a journal from one schema to the next. They are run in order,
// in one transaction, and never changed once released.
type migration func(c *conn) error

// migrations has at index i what leads from schema i to schema i+1.
var migrations = []migration{script(schema1 + appendOnly()), script(schema2)}

func script(sql string) migration {
	return func(c *conn) error { return c.script(sql) }
}

// schema1 holds, in its first half, what is only ever added to, and in its second
// what the first half adds up to now. Lineages and glyphs are referred to by number,
// in columns and inside the JSON bodies alike, so that a lineage can be renamed and
// a glyph is stored once.
const schema1 = `
CREATE TABLE runs (
  id        INTEGER PRIMARY KEY,
  lineage   INTEGER NOT NULL REFERENCES lineages(id),
  command   TEXT NOT NULL,
  started   INTEGER NOT NULL, -- nanoseconds since 1970, as all times here
  uid       INTEGER NOT NULL,
  sudo_user TEXT NOT NULL,
  version   TEXT NOT NULL,
  boot_id   TEXT NOT NULL,
  machine   TEXT NOT NULL,
  pid       INTEGER NOT NULL,
  source    TEXT NOT NULL,
  digest    TEXT NOT NULL
) STRICT;
CREATE TABLE run_ends (
  run     INTEGER PRIMARY KEY REFERENCES runs(id),
  at      INTEGER NOT NULL,
  outcome TEXT NOT NULL
) STRICT;
CREATE TABLE leaf_ends (
  id      INTEGER PRIMARY KEY,
  run     INTEGER NOT NULL REFERENCES runs(id),
  leaf    TEXT NOT NULL,
  outcome TEXT NOT NULL,
  body    TEXT NOT NULL, -- the whole outcome
  UNIQUE (run, leaf)
) STRICT;
CREATE TABLE glyphs (
  id     INTEGER PRIMARY KEY,
  digest TEXT NOT NULL UNIQUE, -- SHA-256 of the body
  body   TEXT NOT NULL
) STRICT;
CREATE TABLE steps (
  id       INTEGER PRIMARY KEY,
  run      INTEGER NOT NULL REFERENCES runs(id),
  lineage  INTEGER NOT NULL REFERENCES lineages(id),
  leaf     TEXT NOT NULL,
  sort     TEXT NOT NULL,
  resource TEXT NOT NULL,
  before   TEXT, -- the whole record; null: none
  after    TEXT,
  inverse  TEXT,
  expect   TEXT,
  ledger   TEXT
) STRICT;
CREATE INDEX steps_run ON steps(run);
CREATE TABLE step_glyphs (
  step     INTEGER NOT NULL REFERENCES steps(id),
  position INTEGER NOT NULL,
  op       TEXT NOT NULL CHECK (op IN ('install', 'replace', 'repair', 'remove', 'noop')),
  key      TEXT NOT NULL,
  cid      TEXT NOT NULL,
  old      INTEGER REFERENCES glyphs(id),
  new      INTEGER REFERENCES glyphs(id),
  leaf     TEXT NOT NULL,
  changed  INTEGER NOT NULL,
  reason   TEXT NOT NULL,
  PRIMARY KEY (step, position)
) STRICT, WITHOUT ROWID;
CREATE INDEX step_glyphs_key ON step_glyphs(key);
CREATE TABLE step_ends (
  step   INTEGER NOT NULL REFERENCES steps(id),
  status TEXT NOT NULL CHECK (status IN ('done', 'failed', 'reversed')),
  at     INTEGER NOT NULL,
  detail TEXT NOT NULL,
  amend  TEXT, -- what of the step turned out otherwise than intended
  PRIMARY KEY (step, status)
) STRICT, WITHOUT ROWID;
CREATE TABLE moves (
  id      INTEGER PRIMARY KEY,
  key     TEXT NOT NULL,
  step    INTEGER NOT NULL REFERENCES steps(id), -- the application that it is about
  lineage INTEGER NOT NULL REFERENCES lineages(id),
  leaf    TEXT NOT NULL,
  glyph   INTEGER REFERENCES glyphs(id), -- null: the same as before
  at      INTEGER NOT NULL
) STRICT;
CREATE INDEX moves_key ON moves(key);
CREATE TABLE revisions (
  id       INTEGER PRIMARY KEY,
  lineage  INTEGER NOT NULL REFERENCES lineages(id),
  number   INTEGER NOT NULL,
  kind     TEXT NOT NULL CHECK (kind IN ('init', 'reconcile')),
  run      INTEGER NOT NULL UNIQUE REFERENCES runs(id),
  at       INTEGER NOT NULL,
  outcome  TEXT NOT NULL,
  leaves   TEXT NOT NULL,
  counts   TEXT NOT NULL,
  declared TEXT NOT NULL, -- leaves in order, glyphs by number
  UNIQUE (lineage, number)
) STRICT;
CREATE TABLE blobs (
  hash TEXT PRIMARY KEY, -- SHA-256
  size INTEGER NOT NULL,
  body BLOB -- null: the bytes lie beside the database
) STRICT;
CREATE TABLE kept (
  id     INTEGER PRIMARY KEY,
  at     INTEGER NOT NULL,
  run    INTEGER REFERENCES runs(id),
  step   INTEGER REFERENCES steps(id),
  path   TEXT NOT NULL,
  node   TEXT,
  blob   TEXT REFERENCES blobs(hash),
  size   INTEGER NOT NULL,
  reason TEXT NOT NULL
) STRICT;

CREATE TABLE meta (
  name  TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT;
CREATE TABLE lineages (
  id   INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  dir  TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE TABLE records (
  id       INTEGER PRIMARY KEY,
  sort     TEXT NOT NULL,
  resource TEXT NOT NULL,
  body     TEXT NOT NULL,
  UNIQUE (sort, resource)
) STRICT;
CREATE TABLE ledger (
  id       INTEGER PRIMARY KEY,
  sort     TEXT NOT NULL,
  resource TEXT NOT NULL,
  body     TEXT,
  UNIQUE (sort, resource)
) STRICT;
CREATE TABLE applied (
  key      TEXT PRIMARY KEY, -- so a key belongs to at most one lineage
  lineage  INTEGER NOT NULL REFERENCES lineages(id),
  leaf     TEXT NOT NULL,
  glyph    INTEGER NOT NULL REFERENCES glyphs(id),
  sort     TEXT NOT NULL,
  resource TEXT NOT NULL,
  step     INTEGER NOT NULL REFERENCES steps(id),
  position INTEGER NOT NULL,
  revision INTEGER NOT NULL,
  changed  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE due (
  lineage INTEGER NOT NULL REFERENCES lineages(id),
  leaf    TEXT NOT NULL,
  name    TEXT NOT NULL,
  step    INTEGER,
  body    TEXT,
  PRIMARY KEY (lineage, leaf, name)
) STRICT, WITHOUT ROWID;
CREATE TABLE pending (
  id   INTEGER PRIMARY KEY CHECK (id = 1),
  run  INTEGER NOT NULL REFERENCES runs(id),
  body TEXT
) STRICT;
`

// schema2 notes which revision a run goes back to, and which steps of ended runs are still
// to be taken back.
const schema2 = `ALTER TABLE runs ADD COLUMN target INTEGER NOT NULL DEFAULT 0;
CREATE TABLE owed (step INTEGER PRIMARY KEY REFERENCES steps(id)) STRICT;`

// appendOnlyTables are the tables that are only added to.
var appendOnlyTables = []string{
	"runs", "run_ends", "leaf_ends", "glyphs", "steps", "step_glyphs", "step_ends", "moves", "revisions", "blobs", "kept",
}

// appendOnly returns the triggers of schema 1 that refuse to change or take away a
// row. (That INSERT OR REPLACE fires them is up to recursive_triggers.)
func appendOnly() string {
	var sql string
	for _, t := range appendOnlyTables {
		for _, verb := range []string{"UPDATE", "DELETE"} {
			sql += fmt.Sprintf("CREATE TRIGGER %s_no_%s BEFORE %s ON %s BEGIN SELECT RAISE(ABORT, '%s is append-only'); END;\n",
				t, strings.ToLower(verb), verb, t, t)
		}
	}
	return sql
}

// appendOnlyTriggers writes a statement for each of those triggers, with its table and its
// verb.
func appendOnlyTriggers(statement string) []string {
	var all []string
	for _, t := range appendOnlyTables {
		for _, verb := range []string{"update", "delete"} {
			all = append(all, fmt.Sprintf(statement, t, verb))
		}
	}
	return all
}
