package scrolls

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"

	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// maxFolderFiles bounds what one attribute may take in: a wrong name ("/") must not
// read a whole disk.
const maxFolderFiles = 2000

// folder reads the local directory that an attribute names (Attr.Folder): the attribute
// becomes an object of file names, each with "sha256", "size" and "exec", whether its
// owner may execute it. Glyph.Files has where each one's bytes are, under the
// attribute's name, a slash and the file's.
func (l *loader) folder(g *Glyph, attr *hclsyntax.Attribute, name string, secret bool) {
	root := l.abs(name)
	found := map[string]any{}
	files := map[string]string{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return bare(err)
		}
		if entry.IsDir() {
			return nil
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if !entry.Type().IsRegular() {
			return fmt.Errorf("%s is not a regular file", strconv.Quote(rel))
		}
		if len(found) == maxFolderFiles {
			return fmt.Errorf("it holds more than %d files", maxFolderFiles)
		}
		st, err := entry.Info()
		if err != nil {
			return bare(err)
		}
		sum, size, err := hashFile(path)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		l.seen.addSum("file", l.noted(filepath.Join(name, rel)), sum)
		found[rel] = map[string]any{"sha256": sum, "size": json.Number(strconv.FormatInt(size, 10)), "exec": st.Mode()&0o100 != 0}
		files[attr.Name+"/"+rel] = path
		return nil
	})
	if err == nil && len(found) == 0 {
		err = errors.New("it holds no file")
	}
	if err != nil {
		l.fail("Directory cannot be read", fmt.Sprintf("%s: %s.", named(name, "The directory", secret), err), attr.Expr.Range())
		return
	}
	g.Attrs[attr.Name] = found
	if g.Files == nil {
		g.Files = map[string]string{}
	}
	for file, path := range files {
		g.Files[file] = path
	}
}
