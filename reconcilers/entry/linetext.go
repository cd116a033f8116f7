package entry

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// placed gives an error a place in the text, if it has none.
func placed(text []byte, offset int, err error) error {
	var p *PlaceError
	if errors.As(err, &p) && p.Line == 0 {
		return at(text, offset, "%s", p.Why)
	}
	return err
}

// ofValue says of an error that the wished value is what is wrong.
func ofValue(err error) error {
	var p *PlaceError
	if errors.As(err, &p) {
		p.Value = true
	}
	return err
}

// onOneLine refuses a value that does not fit on a line.
func onOneLine(raw string) (string, error) {
	switch {
	case strings.ContainsAny(raw, "\r\n"):
		return "", refuse("a value of this format is one line, and this one holds a line break")
	case strings.Contains(raw, "\x00"):
		return "", refuse("a value of this format is text, and this one holds a NUL byte")
	}
	return raw, nil
}

func refuse(format string, args ...any) error { return &PlaceError{Why: fmt.Sprintf(format, args...)} }

func quote(s string) string { return strconv.Quote(s) }

// bom is UTF-8's byte order mark.
const bom = "\xef\xbb\xbf"

// textStart is where the first line begins.
func textStart(text []byte) int {
	if bytes.HasPrefix(text, []byte(bom)) {
		return len(bom)
	}
	return 0
}

// lineEnd finds the end of the line at an offset: of its content, and with its ending.
func lineEnd(text []byte, from int) (content, end int) {
	i := bytes.IndexByte(text[from:], '\n')
	if i < 0 {
		content, end = len(text), len(text)
	} else {
		content, end = from+i, from+i+1
	}
	if content > from && text[content-1] == '\r' {
		content--
	}
	return content, end
}

// ending is the line ending of the neighbours of an offset.
func ending(text []byte, at int) string {
	i := bytes.LastIndexByte(text[:at], '\n')
	if i < 0 {
		i = bytes.IndexByte(text, '\n')
	}
	if i > 0 && text[i-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}

// skipBlank steps over spaces and tabs.
func skipBlank(text []byte, from, to int) int {
	for from < to && (text[from] == ' ' || text[from] == '\t') {
		from++
	}
	return from
}

// trimBlank steps back over spaces and tabs.
func trimBlank(text []byte, from, to int) int {
	for to > from && (text[to-1] == ' ' || text[to-1] == '\t') {
		to--
	}
	return to
}

// scalar spells a plain value; yes and no are what a boolean is called.
func scalar(value any, yes, no string) (string, error) {
	switch v := value.(type) {
	case string:
		return v, nil
	case json.Number:
		return v.String(), nil
	case bool:
		if v {
			return yes, nil
		}
		return no, nil
	case nil:
		return "", refuse("null cannot be written in this format")
	case []any:
		return "", refuse("a list cannot be written as one value in this format; declare each as a member")
	}
	return "", refuse("a map cannot be written as one value in this format; declare its keys one by one")
}

// Check implements Checker.
func (d *dialect) Check(w Wish) (attr, why string) {
	_, err := d.aim(w)
	switch {
	case err != nil:
		return "key", sentence(err)
	case w.Absent:
		return "", ""
	case w.Member && d.lone != "":
		return "member", sentence(refuse("%s", d.lone))
	}
	if _, list := w.Value.([]any); list && d.lone != "" {
		return "value", sentence(refuse("a list cannot be written as one value in this format; join what is in it to one text"))
	}
	return wrong(w, d.fits(w.Value))
}

// wrong says which attribute an error about a value is about.
func wrong(w Wish, err error) (attr, why string) {
	switch {
	case err == nil:
		return "", ""
	case w.Member:
		return "member", sentence(err)
	}
	return "value", sentence(err)
}

// sentence is an error's text as a sentence.
func sentence(err error) string {
	text := err.Error()
	first, n := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + text[n:] + "."
}
