package reconcilers

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/tailscale/hujson"
)

// A saying is one thing that a text says, by a reader that is not golem's: a value that holds
// no other, with the way to it. A place in a list is a number.
type saying struct {
	way   []any
	value string
}

// foreignReaders read a text by other people's parsers, and formats that have none by
// readers that know only lines. None of them shares a line with golem's.
var foreignReaders = map[string]func(text []byte) ([]saying, error){
	"json": func(text []byte) ([]saying, error) {
		std, err := hujson.Standardize(bytes.Clone(bytes.TrimPrefix(text, bom)))
		if err != nil {
			return nil, err
		}
		return decodeSaid(std)
	},
	"yaml":    readForeignYAML,
	"toml":    readForeignTOML,
	"ini":     readForeignINI,
	"env":     readForeignEnv,
	"keyword": readForeignKeywords,
}

func decodeSaid(text []byte) ([]saying, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	return flatten(nil, nil, v), nil
}

// flatten lists the values that hold no other.
func flatten(list []saying, way []any, v any) []saying {
	way = slices.Clip(way)
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(mapKeys(v)) {
			list = flatten(list, append(way, name), v[name])
		}
		if len(v) > 0 {
			return list
		}
	case []any:
		for i, m := range v {
			list = flatten(list, append(way, i), m)
		}
		if len(v) > 0 {
			return list
		}
	}
	spelled, err := json.Marshal(v)
	if err != nil {
		spelled = fmt.Append(nil, v) // what JSON has not: a number that is none
	}
	return append(list, saying{way, string(spelled)})
}

func mapKeys(m map[string]any) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// A laterDocument is the first step of a way in another document than the first of a stream.
type laterDocument int

func readForeignYAML(text []byte) ([]saying, error) {
	var list []saying
	d := yaml.NewDecoder(bytes.NewReader(text))
	for n := 0; ; n++ {
		var v any
		err := d.Decode(&v)
		if errors.Is(err, io.EOF) {
			return list, nil
		}
		if err != nil {
			return nil, err
		}
		var way []any
		if n > 0 {
			way = []any{laterDocument(n)}
		}
		list = flatten(list, way, plainForeign(v))
	}
}

func plainForeign(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, m := range v {
			v[name] = plainForeign(m)
		}
	case map[any]any:
		object := map[string]any{}
		for name, m := range v {
			object[fmt.Sprint(name)] = plainForeign(m)
		}
		return object
	case []any:
		for i, m := range v {
			v[i] = plainForeign(m)
		}
	}
	return v
}

var errNoPython = errors.New("there is no python3 with tomllib here")

// python answers texts of TOML with what they say, one a line; it ends with the test.
type python struct {
	sync.Mutex
	in  io.Writer
	out *bufio.Reader
}

const pythonTOML = `
import sys, json, tomllib
for line in sys.stdin:
    try:
        print(json.dumps(tomllib.loads(json.loads(line)), default=str), flush=True)
    except Exception as e:
        print(json.dumps("error: " + str(e)), flush=True)
`

// pythons is the one python, nil where there is none that knows TOML.
var pythons = sync.OnceValue(func() *python {
	if exec.Command("python3", "-c", "import tomllib").Run() != nil {
		return nil
	}
	cmd := exec.Command("python3", "-c", pythonTOML)
	in, inErr := cmd.StdinPipe()
	out, outErr := cmd.StdoutPipe()
	if errors.Join(inErr, outErr) != nil || cmd.Start() != nil {
		return nil
	}
	return &python{in: in, out: bufio.NewReader(out)}
})

func readForeignTOML(text []byte) ([]saying, error) {
	p := pythons()
	if p == nil {
		return nil, errNoPython
	}
	p.Lock()
	defer p.Unlock()
	if !utf8.Valid(text) {
		return nil, errors.New("it is no UTF-8")
	}
	if err := json.NewEncoder(p.in).Encode(string(bytes.TrimPrefix(text, bom))); err != nil {
		return nil, err
	}
	answer, err := p.out.ReadBytes('\n')
	if err != nil {
		return nil, err
	}
	if bytes.HasPrefix(answer, []byte(`"error`)) {
		return nil, errors.New(string(answer))
	}
	return decodeSaid(answer)
}

// readForeignINI knows sections, pairs, and lines that go on: behind a backslash, or deeper
// than their key and without an equals sign.
func readForeignINI(text []byte) ([]saying, error) {
	var list []saying
	section, indent, joined := "", -1, false // of the last key, -1 for none
	for line := range strings.Lines(string(bytes.TrimPrefix(text, bom))) {
		line = strings.TrimRight(line, "\r\n")
		trim := strings.TrimSpace(line)
		comment := strings.HasPrefix(trim, "#") || strings.HasPrefix(trim, ";")
		switch {
		case joined, indent >= 0 && !comment && trim != "" && trim[0] != '[' && indentOf(line) > indent && !strings.Contains(trim, "="):
			list[len(list)-1].value += "|" + trim
			joined = strings.HasSuffix(trim, `\`) || joined && comment
			continue
		case trim == "" || comment:
			continue
		case trim[0] == '[':
			end := strings.LastIndexByte(trim, ']')
			if end < 0 {
				return nil, errors.New("a section is open")
			}
			section, indent = trim[1:end], -1
			continue
		}
		key, value, ok := strings.Cut(trim, "=")
		if !ok {
			key, value, _ = strings.Cut(trim, ":")
		}
		list = append(list, saying{[]any{section, strings.TrimSpace(key)}, strings.TrimSpace(value)})
		indent, joined = indentOf(line), strings.HasSuffix(trim, `\`)
	}
	return list, nil
}

func indentOf(line string) int { return len(line) - len(strings.TrimLeft(line, " \t")) }

var foreignAssignment = regexp.MustCompile(`^[ \t]*(?:export[ \t]+)?([A-Za-z_][A-Za-z0-9_]*)=(.*)$`)

// readForeignEnv knows assignments, and quotes that are open at a line's end.
func readForeignEnv(text []byte) ([]saying, error) {
	var list []saying
	open := byte(0)
	for line := range strings.Lines(string(bytes.TrimPrefix(text, bom))) {
		line = strings.TrimRight(line, "\r\n")
		if open != 0 || len(list) > 0 && strings.HasSuffix(list[len(list)-1].value, `\`) {
			last := &list[len(list)-1]
			last.value += "|" + line
			if open != ')' || strings.Contains(line, ")") {
				open = openQuote(line, open)
			}
			continue
		}
		m := foreignAssignment.FindStringSubmatch(line)
		if m == nil {
			if trim := strings.TrimSpace(line); trim != "" && trim[0] != '#' {
				list = append(list, saying{[]any{""}, trim}) // a command
			}
			continue
		}
		list = append(list, saying{[]any{m[1]}, m[2]})
		if open = openQuote(m[2], 0); strings.HasPrefix(m[2], "(") && !strings.Contains(m[2], ")") {
			open = ')' // a list, of bash
		}
	}
	return list, nil
}

// openQuote is the quote that is open at the end of a line, 0 for none.
func openQuote(line string, open byte) byte {
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '\\' && open != '\'':
			i++
		case open == 0 && c == '#' && (i == 0 || line[i-1] == ' ' || line[i-1] == '\t'):
			return 0
		case open == 0 && (c == '"' || c == '\'' || c == '`'):
			open = c
		case c == open:
			open = 0
		}
	}
	return open
}

// readForeignKeywords knows words, and the lines that open a block.
func readForeignKeywords(text []byte) ([]saying, error) {
	var list []saying
	var block []any
	for line := range strings.Lines(string(bytes.TrimPrefix(text, bom))) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		i := strings.IndexAny(line, " \t=")
		if i < 0 {
			i = len(line)
		}
		if strings.EqualFold(line[:i], "match") || strings.EqualFold(line[:i], "host") {
			block = []any{strings.Join(strings.Fields(line), " ")}
			continue
		}
		list = append(list, saying{append(slices.Clone(block), line[:i]), strings.TrimLeft(line[i:], " \t=")})
	}
	return list, nil
}

// wayText spells a way, to compare it by.
func wayText(format string, way []any) string {
	var b strings.Builder
	for _, step := range way {
		switch step := step.(type) {
		case int:
			b.WriteString("#" + strconv.Itoa(step))
		case laterDocument:
			b.WriteString("document " + strconv.Itoa(int(step)))
		case string:
			if format == "keyword" {
				step = strings.ToLower(step)
			}
			b.WriteString(step)
		}
		b.WriteByte(0)
	}
	return b.String()
}
