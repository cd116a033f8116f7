package scrolls

import (
	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
)

// Format lays a scroll out in the one usual way. What does not parse is left to the
// diagnostics.
func Format(src []byte, name string) ([]byte, error) {
	if err := parseable(src, name); err != nil {
		return nil, fmt.Errorf("format %s: %w", name, err)
	}
	file, diags := hclsyntax.ParseConfig(src, name, hcl.InitialPos)
	if diags.HasErrors() {
		return nil, &Diagnostics{All: diags, Files: map[string]*hcl.File{name: file}}
	}
	return hclwrite.Format(src), nil
}
