package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A validator checks values against the JSON Schemas in docs/. It knows the part of the
// language that they use and refuses any other, and it is strict: a property that no
// schema describes is a mistake.
type validator struct {
	dir   string
	files map[string]map[string]any
}

func newValidator() *validator {
	return &validator{dir: "../docs", files: map[string]map[string]any{}}
}

// schema reads a schema file once.
func (v *validator) schema(file string) (map[string]any, error) {
	if s := v.files[file]; s != nil {
		return s, nil
	}
	data, err := os.ReadFile(filepath.Join(v.dir, file))
	if err != nil {
		return nil, err
	}
	var s map[string]any
	if err := json.Unmarshal(data, &s); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	v.files[file] = s
	return s, nil
}

// resolve follows "file#/$defs/name".
func (v *validator) resolve(file, ref string) (string, map[string]any, error) {
	to, name, ok := strings.Cut(ref, "#/$defs/")
	if !ok {
		return "", nil, fmt.Errorf("%s: the reference %q leads nowhere", file, ref)
	}
	if to == "" {
		to = file
	}
	whole, err := v.schema(to)
	if err != nil {
		return "", nil, err
	}
	defs, _ := whole["$defs"].(map[string]any)
	s, ok := defs[name].(map[string]any)
	if !ok {
		return "", nil, fmt.Errorf("%s: there is no definition %q", to, name)
	}
	return to, s, nil
}

// check returns what is wrong with a value, by the place in it.
func (v *validator) check(file string, schema map[string]any, at string, value any) []string {
	if ref, ok := schema["$ref"].(string); ok {
		to, s, err := v.resolve(file, ref)
		if err != nil {
			return []string{err.Error()}
		}
		return v.check(to, s, at, value)
	}
	var wrong []string
	for word, arg := range schema {
		wrong = append(wrong, v.word(file, schema, word, arg, at, value)...)
	}
	return wrong
}

// word checks one keyword of a schema.
func (v *validator) word(file string, schema map[string]any, word string, arg any, at string, value any) []string {
	bad := func(format string, args ...any) []string {
		return []string{at + ": " + fmt.Sprintf(format, args...)}
	}
	switch word {
	case "$schema", "$defs", "title", "description", "properties":
	case "type":
		types, ok := arg.([]any)
		if !ok {
			types = []any{arg}
		}
		if !slices.ContainsFunc(types, func(t any) bool { return hasType(value, t) }) {
			return bad("%v is no %v", value, arg)
		}
	case "const":
		if !reflect.DeepEqual(value, arg) {
			return bad("%v is not %v", value, arg)
		}
	case "enum":
		if !slices.Contains(arg.([]any), value) {
			return bad("%v is none of %v", value, arg)
		}
	case "pattern":
		if s, ok := value.(string); ok && !regexp.MustCompile(arg.(string)).MatchString(s) {
			return bad("%q does not match %s", s, arg)
		}
	case "minimum":
		if n, ok := value.(float64); ok && n < arg.(float64) {
			return bad("%v is less than %v", n, arg)
		}
	case "required":
		object, ok := value.(map[string]any)
		if !ok {
			return nil // a null, which type allows or not
		}
		properties, _ := schema["properties"].(map[string]any)
		return v.object(file, properties, arg.([]any), at, object)
	case "items":
		return v.items(file, arg.(map[string]any), at, value)
	case "oneOf":
		return v.oneOf(file, arg.([]any), at, value)
	default:
		return bad("the validator does not know %q", word)
	}
	return nil
}

func (v *validator) object(file string, properties map[string]any, required []any, at string, object map[string]any) []string {
	var wrong []string
	for _, name := range required {
		if _, ok := object[name.(string)]; !ok {
			wrong = append(wrong, fmt.Sprintf("%s: %q is missing", at, name))
		}
	}
	for name, value := range object {
		s, ok := properties[name].(map[string]any)
		if !ok {
			wrong = append(wrong, fmt.Sprintf("%s: %q is not described", at, name))
			continue
		}
		wrong = append(wrong, v.check(file, s, at+"."+name, value)...)
	}
	return wrong
}

func (v *validator) items(file string, schema map[string]any, at string, value any) []string {
	list, _ := value.([]any)
	var wrong []string
	for i, item := range list {
		wrong = append(wrong, v.check(file, schema, fmt.Sprintf("%s[%d]", at, i), item)...)
	}
	return wrong
}

func (v *validator) oneOf(file string, schemas []any, at string, value any) []string {
	var wrong []string
	fit := 0
	for _, s := range schemas {
		if found := v.check(file, s.(map[string]any), at, value); len(found) == 0 {
			fit++
		} else {
			wrong = append(wrong, found...)
		}
	}
	if fit == 1 {
		return nil
	}
	return append(wrong, fmt.Sprintf("%s: fits %d of %d", at, fit, len(schemas)))
}

func hasType(value, name any) bool {
	switch v := value.(type) {
	case nil:
		return name == "null"
	case string:
		return name == "string"
	case bool:
		return name == "boolean"
	case float64:
		return name == "number" || name == "integer" && v == float64(int64(v))
	case []any:
		return name == "array"
	case map[string]any:
		return name == "object"
	}
	return false
}

// fits checks one JSON text against a schema file and returns its value.
func (v *validator) fits(t *testing.T, file, text string) map[string]any {
	t.Helper()
	schema, err := v.schema(file)
	if err != nil {
		t.Fatal(err)
	}
	var value map[string]any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	for _, wrong := range v.check(file, schema, "$", value) {
		t.Errorf("%s: %s", file, wrong)
	}
	return value
}

// A validator that finds nothing wrong with anything would prove nothing.
func TestTheValidatorFindsMistakes(t *testing.T) {
	good := newStage(t)
	good.declare(t, `file "/etc/motd" { content = "x" }`)
	text := good.run(t, 0, "plan", "--json").stdout
	v := newValidator()
	schema, err := v.schema("plan.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(doc map[string]any){
		"a field too many":   func(doc map[string]any) { doc["more"] = 1.0 },
		"a field too few":    func(doc map[string]any) { delete(doc, "summary") },
		"a wrong type":       func(doc map[string]any) { doc["name"] = 3.0 },
		"a wrong word":       func(doc map[string]any) { doc["changes"].([]any)[0].(map[string]any)["op"] = "invent" },
		"null for a list":    func(doc map[string]any) { doc["changes"] = nil },
		"a negative number":  func(doc map[string]any) { doc["revision"] = -1.0 },
		"a number not whole": func(doc map[string]any) { doc["revision"] = 0.5 },
		"a mode not octal": func(doc map[string]any) {
			doc["changes"].([]any)[0].(map[string]any)["after"].(map[string]any)["mode"] = "rw"
		},
	} {
		var doc map[string]any
		if err := json.Unmarshal([]byte(text), &doc); err != nil {
			t.Fatal(err)
		}
		if wrong := v.check("plan.schema.json", schema, "$", doc); len(wrong) > 0 {
			t.Fatal(wrong)
		}
		spoil(doc)
		if wrong := v.check("plan.schema.json", schema, "$", doc); len(wrong) == 0 {
			t.Errorf("%s: not found", name)
		}
	}
}
