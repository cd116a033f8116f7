package scrolls

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
)

// Format lays a scroll out in the one usual way. What does not parse is left to the
// diagnostics.
func Format(src []byte, name string) ([]byte, error) {
	file, diags := hclsyntax.ParseConfig(src, name, hcl.InitialPos)
	if diags.HasErrors() {
		return nil, &Diagnostics{All: diags, Files: map[string]*hcl.File{name: file}}
	}
	return hclwrite.Format(src), nil
}
