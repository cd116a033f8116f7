package scrolls

import (
	"errors"
	"fmt"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclwrite"
)

// Format lays a scroll out in the one usual way. What does not parse is left to the
// diagnostics.
func Format(src []byte, name string) ([]byte, error) {
	if err := parseable(src, name); err != nil {
		return nil, fmt.Errorf("format %s: %w", name, err)
	}
	file, diags := parseFile(src, name)
	if diags.HasErrors() {
		return nil, &Diagnostics{All: diags, Files: map[string]*hcl.File{name: file}}
	}
	return hclwrite.Format(src), nil
}

// FormatFile is Format of a file, beside what stands in it now.
func FormatFile(name string) (src, next []byte, err error) {
	if src, err = readSource("scroll", name); err != nil {
		return nil, nil, err
	}
	next, err = Format(src, name)
	return src, next, err
}

// Files lists the files of a scroll's directory, those of variables too, in the order of
// their names.
func Files(dir string) ([]string, error) {
	files, vars, err := sources(dir, dir, true)
	if len(vars) > 0 && errors.Is(err, ErrNoScroll) {
		err = nil
	}
	files = append(files, vars...)
	slices.Sort(files)
	return files, err
}
