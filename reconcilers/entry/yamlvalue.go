package entry

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxNodes bounds what aliases may expand to.
const maxNodes = 1 << 20

// yamlOther is a value that JSON has not, by its tag and text; it is equal to its like
// only.
type yamlOther struct{ tag, text string }

// otherName is what a value that JSON has not is spelled with in a receipt: a name that no
// mapping of YAML has.
const otherName = "\x00yaml"

// MarshalJSON implements json.Marshaler.
func (o yamlOther) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string][]string{otherName: {o.tag, o.text}})
}

// fromReceipt is a value of a receipt with what JSON has not in its place again.
func fromReceipt(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = fromReceipt(v[i])
		}
	case map[string]any:
		if said, ok := v[otherName].([]any); ok && len(said) == 2 {
			tag, _ := said[0].(string)
			text, _ := said[1].(string)
			return yamlOther{tag, text}
		}
		for name := range v {
			v[name] = fromReceipt(v[name])
		}
	}
	return v
}

// yamlVersion is a directive with a version that the parser knows as 1.1 only, and reads so.
var yamlVersion = regexp.MustCompile(`(?m)^(%YAML[ \t]+1\.)2\b`)

// readYAML reads the documents of a stream as plain values, by a parser that is not the
// editor's own: what it says of a text before and after an edit must differ in the one
// key only. The values stay as they are.
func readYAML(text []byte) ([]any, error) { return yamlTexts.of(text, parsedYAML) }

var yamlTexts memo[[]any]

func parsedYAML(text []byte) ([]any, error) {
	var docs []any
	d := yaml.NewDecoder(bytes.NewReader(yamlVersion.ReplaceAll(text, []byte("${1}1"))))
	left := maxNodes
	for {
		var n yaml.Node
		err := safely(func() error { return d.Decode(&n) })
		if errors.Is(err, io.EOF) {
			return docs, nil
		}
		if err != nil {
			return nil, yamlPlace(err)
		}
		v, err := plainYAML(&n, &left, map[*yaml.Node]bool{})
		if err != nil {
			return nil, err
		}
		docs = append(docs, v)
	}
}

// safely turns a parser's panic into an error.
func safely(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the parser fails: %v", r)
		}
	}()
	return f()
}

var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// yamlPlace is a parser's error with its place.
func yamlPlace(err error) error {
	text := err.Error()
	m := yamlLine.FindStringSubmatch(text)
	if m == nil {
		return &PlaceError{Why: "it cannot be read: " + text}
	}
	line, _ := strconv.Atoi(m[1]) // 0, where it says none
	return &PlaceError{Line: line, Column: min(line, 1), Why: "it cannot be read: " + text[len(m[0]):]}
}

// plainYAML is a node as a plain value, with aliases followed.
func plainYAML(n *yaml.Node, left *int, within map[*yaml.Node]bool) (any, error) {
	if *left--; *left < 0 {
		return nil, &PlaceError{Line: n.Line, Column: n.Column, Why: "its aliases stand for more than golem reads"}
	}
	switch n.Kind {
	case yaml.DocumentNode:
		if len(n.Content) == 0 {
			return nil, nil
		}
		return plainYAML(n.Content[0], left, within)
	case yaml.AliasNode:
		if within[n.Alias] {
			return nil, &PlaceError{Line: n.Line, Column: n.Column, Why: "an alias stands for what it lies in"}
		}
		within[n.Alias] = true
		defer delete(within, n.Alias)
		return plainYAML(n.Alias, left, within)
	case yaml.SequenceNode:
		list := make([]any, 0, len(n.Content))
		for _, m := range n.Content {
			v, err := plainYAML(m, left, within)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		return list, nil
	case yaml.MappingNode:
		object := make(map[string]any, len(n.Content)/2)
		for i := 0; i+1 < len(n.Content); i += 2 {
			v, err := plainYAML(n.Content[i+1], left, within)
			if err != nil {
				return nil, err
			}
			object[nameYAML(n.Content[i])] = v
		}
		return object, nil
	}
	return scalarYAML(n), nil
}

// nameYAML is the name of a member as text.
func nameYAML(n *yaml.Node) string {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Kind != yaml.ScalarNode {
		return fmt.Sprintf("\x00%d:%d", n.Line, n.Column) // which no key names
	}
	return n.Value
}

// scalarYAML is a scalar as a plain value.
func scalarYAML(n *yaml.Node) any {
	switch n.ShortTag() {
	case "!!null":
		return nil
	case "!!bool":
		return strings.EqualFold(n.Value, "true")
	case "!!str", "!!timestamp":
		return n.Value
	case "!!int":
		digits := strings.ReplaceAll(strings.TrimPrefix(n.Value, "+"), "_", "")
		if i, ok := new(big.Int).SetString(digits, 0); ok {
			return json.Number(i.String())
		}
	case "!!float":
		digits := strings.ReplaceAll(strings.TrimPrefix(n.Value, "+"), "_", "")
		if _, _, ok := decimal(digits); ok && strings.ContainsAny(digits, "0123456789") && strings.Trim(digits, "+-.0123456789eE") == "" {
			return json.Number(digits)
		}
	}
	return yamlOther{n.ShortTag(), n.Value}
}
