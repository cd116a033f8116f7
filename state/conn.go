package state

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"
)

// A conn is one connection with its prepared statements. Every error it returns is
// golem's own.
type conn struct {
	path  string // the journal, for messages
	db    *sql.DB
	c     *sql.Conn
	stmts map[string]*sql.Stmt
}

// connect opens the database at file, which must exist; params is the rest of its URI.
func connect(path, file, params string) (*conn, error) {
	name := strings.NewReplacer("%", "%25", "?", "%3f", "#", "%23").Replace(file)
	db, err := sql.Open("sqlite", "file:"+name+"?"+params)
	if err != nil {
		return nil, explain(path, err)
	}
	db.SetMaxOpenConns(1)
	c, err := db.Conn(context.Background())
	if err != nil {
		db.Close()
		return nil, explain(path, err)
	}
	return &conn{path: path, db: db, c: c, stmts: map[string]*sql.Stmt{}}, nil
}

func (c *conn) close() error {
	var errs []error
	for _, s := range c.stmts {
		errs = append(errs, s.Close())
	}
	errs = append(errs, c.c.Close(), c.db.Close())
	return explain(c.path, errors.Join(errs...))
}

// script runs several statements that take no arguments.
func (c *conn) script(text string) error {
	_, err := c.c.ExecContext(context.Background(), text)
	return explain(c.path, err)
}

func (c *conn) prepare(text string) (*sql.Stmt, error) {
	if s := c.stmts[text]; s != nil {
		return s, nil
	}
	s, err := c.c.PrepareContext(context.Background(), text)
	if err != nil {
		return nil, c.unreadable(err)
	}
	c.stmts[text] = s
	return s, nil
}

// exec returns the number of the row that was inserted.
func (c *conn) exec(text string, args ...any) (int64, error) {
	did, err := c.run(text, args...)
	return did.id, err
}

// change returns how many rows were touched.
func (c *conn) change(text string, args ...any) (int64, error) {
	did, err := c.run(text, args...)
	return did.rows, err
}

// did is what a statement did: the rows it touched, and the number of the last one
// that was inserted.
type did struct{ rows, id int64 }

func (c *conn) run(text string, args ...any) (did, error) {
	s, err := c.prepare(text)
	if err != nil {
		return did{}, err
	}
	res, err := s.ExecContext(context.Background(), args...)
	if err != nil {
		return did{}, explain(c.path, err)
	}
	rows, err1 := res.RowsAffected()
	id, err2 := res.LastInsertId()
	return did{rows, id}, errors.Join(err1, err2)
}

// query calls each for every row.
func (c *conn) query(each func(scan func(...any) error) error, text string, args ...any) error {
	s, err := c.prepare(text)
	if err != nil {
		return err
	}
	rows, err := s.QueryContext(context.Background(), args...)
	if err != nil {
		return c.unreadable(err)
	}
	defer rows.Close()
	scan := func(dest ...any) error { return c.unreadable(rows.Scan(dest...)) }
	for rows.Next() {
		if err := each(scan); err != nil {
			return err
		}
	}
	return c.unreadable(rows.Err())
}

// unreadable explains an error of a statement that reads. The statements are right,
// so that what does not fit them is the journal's tables or a value in them.
func (c *conn) unreadable(err error) error {
	var se *sqlite.Error
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &se):
		return c.damaged("a row of it cannot be read", err)
	case se.Code()&0xff == lib.SQLITE_ERROR:
		return c.damaged("its tables are not those that golem makes", err)
	}
	return explain(c.path, err)
}

// one reads the single row of a query and reports whether there was one.
func (c *conn) one(dest []any, text string, args ...any) (bool, error) {
	s, err := c.prepare(text)
	if err != nil {
		return false, err
	}
	err = s.QueryRowContext(context.Background(), args...).Scan(dest...)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, c.unreadable(err)
}

// number reads a single integer, 0 if there is no row.
func (c *conn) number(text string, args ...any) (int64, error) {
	var n sql.NullInt64
	_, err := c.one([]any{&n}, text, args...)
	return n.Int64, err
}

func (c *conn) damaged(what string, err error) error {
	return &DamagedError{c.path, what, err}
}

// meta reads one named value, "" if it is not there.
func (c *conn) meta(name string) (string, error) {
	var v string
	_, err := c.one([]any{&v}, "SELECT value FROM meta WHERE name = ?", name)
	return v, err
}

func (c *conn) setMeta(name, value string) error {
	_, err := c.exec("INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value", name, value)
	if err != nil {
		return fmt.Errorf("record %s: %w", name, err)
	}
	return nil
}
