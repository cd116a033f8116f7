package entry

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A suiteDoc is one document of a public test suite.
type suiteDoc struct {
	name  string
	text  []byte
	valid bool // as the suite says; of what it leaves open, that another parser reads it
}

// moduleDir is where the go command keeps a module, fetched if it has to be: one that golem
// is built with, or one of a fixed version.
func moduleDir(t *testing.T, module string) string {
	t.Helper()
	args := []string{"list", "-m", "-json", module}
	if strings.Contains(module, "@") {
		args = []string{"mod", "download", "-json", module}
	}
	cmd := exec.Command("go", args...)
	out, err := cmd.Output()
	var said struct{ Dir, Error string }
	if jsonErr := json.Unmarshal(out, &said); err == nil {
		err = jsonErr
	}
	if err == nil && said.Dir == "" {
		err = errors.New("the go command names no directory: " + said.Error)
	}
	switch {
	case err == nil:
	case os.Getenv("CI") == "true":
		t.Fatalf("%s cannot be had: %v\n%s", module, err, out)
	default:
		t.Skipf("%s cannot be had: %v", module, err)
	}
	return said.Dir
}

// jsonSuite is JSONTestSuite, as a module ships it: each name begins with y, n or i.
func jsonSuite(t *testing.T) []suiteDoc {
	dir := moduleDir(t, "github.com/dpb587/inspectjson-go@v0.0.0-20251203142639-90f1442149fb")
	packed, err := os.ReadFile(filepath.Join(dir, "testsuites/nst-JSONTestSuite/testdata.tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	unzip, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	var docs []suiteDoc
	for r := tar.NewReader(unzip); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return docs
		}
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(h.Name)
		if filepath.Ext(name) != ".json" {
			continue
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		valid := name[0] == 'y'
		if name[0] == 'i' {
			_, err := readJSONC(text)
			valid = err == nil
		}
		docs = append(docs, suiteDoc{name, text, valid})
	}
}

// yamlSuite is yaml-test-suite, which golem's third parser ships with its own tests.
func yamlSuite(t *testing.T) []suiteDoc {
	return filesOfSuite(t, filepath.Join(moduleDir(t, "github.com/goccy/go-yaml"), "testdata/yaml-test-suite"), "in.yaml", func(path string) bool {
		_, err := os.Stat(filepath.Join(filepath.Dir(path), "error"))
		return err != nil
	})
}

// tomlSuite is toml-test.
func tomlSuite(t *testing.T) []suiteDoc {
	return filesOfSuite(t, filepath.Join(moduleDir(t, "github.com/toml-lang/toml-test/v2@v2.2.0"), "tests"), ".toml", func(path string) bool {
		return strings.Contains(path, "/valid/")
	})
}

func filesOfSuite(t *testing.T, dir, ending string, valid func(path string) bool) []suiteDoc {
	t.Helper()
	var docs []suiteDoc
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(path, ending) {
			return err
		}
		text, err := os.ReadFile(path)
		docs = append(docs, suiteDoc{strings.TrimPrefix(path, dir), text, valid(path)})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return docs
}

// mostTaken is how many invalid documents of a suite may be edited: those with comments and
// commas that JSONC has, what TOML 1.1 has, and what YAML's parser lets pass.
const mostTaken = 12

// TestTheLawsHoldOnPublicTestSuites edits every document of the test suites of JSON, YAML
// and TOML. One that is valid reads as wished by another parser and comes back to the byte;
// one that is not is refused with its place, or keeps the same laws.
func TestTheLawsHoldOnPublicTestSuites(t *testing.T) {
	draws := 3
	if os.Getenv("GOLEM_SOAK") != "" {
		draws = 100
	}
	for _, c := range []struct {
		name string
		f    Format
		docs func(t *testing.T) []suiteDoc
		read func([]byte) (any, error)
	}{
		{"json", jsonFormat{}, jsonSuite, readJSONC},
		{"yaml", yamlFormat{}, yamlSuite, readYAMLDoc},
		{"toml", tomlFormat{}, tomlSuite, readTOMLDoc},
	} {
		t.Run(c.name, func(t *testing.T) {
			valid, invalid, unread, edits, refused := 0, 0, 0, 0, refusals{}
			taken := map[string]bool{} // invalid, and edited all the same
			for n, doc := range c.docs(t) {
				v, err := c.read(doc.text)
				sound := err == nil && doc.valid
				switch {
				case sound:
					valid++
				case doc.valid:
					unread++
				default:
					invalid++
				}
				t.Run(doc.name, func(t *testing.T) {
					r := rand.New(rand.NewSource(int64(n)))
					for range draws {
						if sound {
							edits += realEdits(t, doc.name, c.f, doc.text, v, c.read, r, refused)
							continue
						}
						if strayEdit(t, doc.name, c.f, doc.text, v, r) && !doc.valid {
							taken[doc.name] = true
						}
					}
				})
			}
			t.Logf("%d valid documents, %d edits; %d invalid ones, of which %d are edited all the same: %.600q; %d valid ones that another parser does not read; refused:\n%s", valid, edits, invalid, len(taken), slices.Sorted(maps.Keys(taken)), unread, refused)
			if len(taken) > mostTaken {
				t.Errorf("%d invalid documents are edited, more than %d", len(taken), mostTaken)
			}
			if valid < 50 || invalid < 50 || edits < valid {
				t.Errorf("%d valid documents, %d invalid ones, %d edits: the suite is not what it was", valid, invalid, edits)
			}
		})
	}
}

// readTOMLDoc reads TOML as any of the readers here.
func readTOMLDoc(text []byte) (any, error) { return parsedTOML(text) }

// strayEdit puts a wish on a text that is not of the format, and takes one off that was put
// on another: it is refused with a reason or keeps the laws, and loses no byte. It says whether
// the text was edited.
func strayEdit(t *testing.T, name string, f Format, text []byte, v any, r *rand.Rand) bool {
	t.Helper()
	who := named{t, name}
	w := realWish(v, r)
	saved := bytes.Clone(text)
	out, receipt, err := f.Put(text, w)
	var place *PlaceError
	switch {
	case err != nil && (!errors.As(err, &place) || place.Why == ""):
		who.Fatalf("the refusal of %+v is no place: %v", w, err)
	case err == nil:
		keepBack(who, f, text, w, out, receipt)
	}
	edited := receipt != nil
	w = Wish{Steps: []Step{{Name: "golem's own"}}, Value: "here"}
	_, receipt, err = f.Put(nil, w)
	if err != nil {
		who.Fatalf("put on nothing: %v", err)
	}
	if back := f.Peel(text, w, receipt); !bytes.Equal(back, saved) || !bytes.Equal(text, saved) {
		who.Fatalf("peel of what was put elsewhere made %q of %q", back, saved)
	}
	return edited
}
