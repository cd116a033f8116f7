package main

import (
	"regexp"

	"github.com/urfave/cli/v3"
)

// Flags that several commands have.
var (
	jsonFlag    = &cli.BoolFlag{Name: "json", Usage: "print JSON"}
	blindFlag   = &cli.BoolFlag{Name: "no-observe", Usage: "compare with the journal only; look for no drift"}
	approveFlag = &cli.BoolFlag{Name: "auto-approve", Usage: "do not ask before changing the host"}
	targetFlag  = &cli.StringSliceFlag{Name: "target", Usage: "only `WHAT`: a key, a pattern of keys, or a leaf"}
	excludeFlag = &cli.StringSliceFlag{Name: "exclude", Usage: "all but `WHAT`; both may be repeated"}
	quietFlag   = &cli.BoolFlag{Name: "quiet", Usage: "print nothing when there is nothing to do"}
)

// shortFlag is how help shows a flag: without the library's note that it may be repeated.
func shortFlag(tell cli.FlagStringFunc) cli.FlagStringFunc {
	repeated := regexp.MustCompile(` \[ --[^\]]* \]`)
	return func(f cli.Flag) string { return repeated.ReplaceAllString(tell(f), "") }
}

func init() { cli.FlagStringer = shortFlag(cli.FlagStringer) }

// commonFlags are understood by every command.
func commonFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "state", Usage: "the journal `FILE`", Sources: cli.EnvVars("GOLEM_STATE")},
		&cli.StringFlag{Name: "root", Usage: "act on the file tree in `DIR`, as for an image build"},
		&cli.StringFlag{Name: "name", Usage: "the lineage's `NAME`, instead of the scroll's own"},
		&cli.StringSliceFlag{Name: "var", Usage: "set a variable: `NAME=VALUE`; may be repeated"},
		&cli.StringSliceFlag{Name: "var-file", Usage: "read variables from `FILE`; may be repeated"},
		&cli.DurationFlag{Name: "lock-timeout", Usage: "how long to wait for another run to end, like `30s`", HideDefault: true},
		&cli.BoolFlag{Name: "no-color", Usage: "print no colours"},
	}
}
