package main

import (
	_ "github.com/aymanbagabas/go-udiff"
	_ "github.com/bmatcuk/doublestar/v4"
	_ "github.com/charmbracelet/lipgloss"
	_ "github.com/google/go-cmp/cmp"
	_ "github.com/hashicorp/hcl/v2/gohcl"
	_ "github.com/rogpeppe/go-internal/testscript"
	_ "github.com/urfave/cli/v3"
	_ "github.com/zclconf/go-cty/cty"
	_ "github.com/zclconf/go-cty/cty/function/stdlib"
	_ "golang.org/x/sys/unix"
	_ "modernc.org/sqlite"
	_ "pgregory.net/rapid"
)

func main() {}
