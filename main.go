// Command golem brings one Linux host to what an HCL scroll says, shows first what it
// will do, and can take back exactly what it did.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/urfave/cli/v3"
	"golang.org/x/sys/unix"

	"golem/apply"
	"golem/plan"
	"golem/state"
)

// version is set when golem is built.
var version = "dev"

// Exit codes, as docs/commands.md lists them.
const (
	exitDone        = 0
	exitError       = 1 // nothing was touched
	exitChanges     = 2 // plan --detailed-exitcode
	exitPartial     = 3
	exitLocked      = 4
	exitStale       = 5
	exitInterrupted = 130
)

func main() {
	os.Exit(run(os.Args, os.Stdin, os.Stdout, os.Stderr))
}

// run is main with its streams, and the exit code as its result.
func run(args []string, stdin, stdout, stderr *os.File) int {
	ends := []os.Signal{syscall.SIGINT, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // as nohup has it
		ends = append(ends, syscall.SIGHUP)
	}
	if err := os.Setenv("PATH", wholePath(os.Getenv("PATH"))); err != nil {
		fmt.Fprintln(stderr, "golem: set PATH:", err)
		return exitError
	}
	ctx, stop := signal.NotifyContext(context.Background(), ends...)
	defer stop()
	go func() {
		<-ctx.Done()
		// A second signal ends golem at once; the journal is whole at every instant. But a
		// session that ends with its terminal hangs up twice.
		signal.Ignore(syscall.SIGHUP)
		stop()
	}()
	// A reader of our output that goes away must not kill a run half way.
	signal.Ignore(syscall.SIGPIPE)
	a := &app{stdin: stdin, out: stdout, err: stderr}
	err := a.command().Run(ctx, args)
	return a.finish(cmp.Or(err, a.noHelp))
}

// wholePath adds to a search path what is missing of the usual one, behind what it has: cron's
// has neither useradd nor what dpkg wants to find.
func wholePath(path string) string {
	dirs := strings.FieldsFunc(path, func(r rune) bool { return r == ':' })
	for _, dir := range []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"} {
		if !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	return strings.Join(dirs, ":")
}

// An app is one invocation of golem.
type app struct {
	stdin    *os.File
	out, err *os.File
	plain    bool  // --no-color
	noHelp   error // that there is no help for what was asked
}

// An exitCode is a result that is told by the exit code alone.
type exitCode int

func (e exitCode) Error() string { return fmt.Sprintf("exit %d", int(e)) }

// finish prints an error with its hint, and turns it into an exit code.
func (a *app) finish(err error) int {
	var code exitCode
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &code):
		return int(code)
	case errors.Is(err, unix.EPIPE):
		return exitOf(err)
	}
	code = exitCode(exitOf(err))
	if code == exitInterrupted {
		fmt.Fprintln(a.err, "golem: interrupted")
	} else {
		a.print(err)
	}
	return int(code)
}

// exitOf is the exit code of an error.
func exitOf(err error) int {
	var locked *state.LockedError
	var touched *apply.TouchedError
	switch {
	case errors.As(err, &touched):
		return exitPartial
	case errors.As(err, &locked):
		return exitLocked
	case errors.As(err, new(*plan.StaleError)):
		return exitStale
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	}
	return exitError
}

// command is the command table.
func (a *app) command() *cli.Command {
	root := &cli.Command{
		Name: "golem", Usage: "bring this host to a scroll, and give it back to the last byte",
		Version: version, HideVersion: true, HideHelpCommand: true,
		Writer: a.out, ErrWriter: a.err, Suggest: true,
		Flags: append(commonFlags(), &cli.BoolFlag{Name: "version", Aliases: []string{"v"}, Hidden: true, Local: true}),
		Before: func(ctx context.Context, c *cli.Command) (context.Context, error) {
			a.plain = c.Bool("no-color")
			return ctx, nil
		},
		Action: func(_ context.Context, c *cli.Command) error {
			if c.Bool("version") {
				return a.version(c)
			}
			if c.Args().First() == "help" {
				return a.help(c.Args().Tail())
			}
			if c.Args().Present() {
				return unknownCommand(c, c.Args().First())
			}
			return cli.ShowRootCommandHelp(c)
		},
		// main alone decides the exit code.
		ExitErrHandler: func(context.Context, *cli.Command, error) {},
		Commands: []*cli.Command{
			a.planCommand(), a.applyCommand(), a.destroyCommand(), a.rollbackCommand(), a.recoverCommand(), a.confirmCommand(), a.returnCommand(),
			a.adoptCommand(), a.historyCommand(), a.showCommand(), a.stateCommand(), a.keptCommand(),
			a.validateCommand(), a.fmtCommand(), a.explainCommand(), a.consoleCommand(), a.graphCommand(), a.completionCommand(), a.completeCommand(), a.versionCommand(),
		},
	}
	a.quietUsage(root)
	exemplify(root, root.Name)
	return root
}

// help is golem help COMMAND, which is golem COMMAND --help.
func (a *app) help(words []string) error {
	root := a.command()
	at := root
	for _, word := range words {
		next := at.Command(word)
		if word == "help" {
			next = at // help of the help
		}
		if next == nil {
			return unknownCommand(at, word)
		}
		at = next
	}
	// Not within the command that runs: this one is golem again.
	words = slices.DeleteFunc(slices.Clone(words), func(word string) bool { return word == "help" })
	return root.Run(context.Background(), slices.Concat([]string{root.Name}, words, []string{"--help"}))
}

// quietUsage makes a usage error one line, in this command and all beneath it.
func (a *app) quietUsage(c *cli.Command) {
	c.OnUsageError = func(_ context.Context, c *cli.Command, err error, _ bool) error {
		return misusedFlag(c, err)
	}
	c.CommandNotFound = func(_ context.Context, c *cli.Command, name string) { // with --help
		if a.noHelp = unknownCommand(c, name); name == "help" {
			a.noHelp = a.help(nil)
		}
	}
	c.DisableSliceFlagSeparator = true // a key, and a variable's value, may hold commas
	for _, sub := range c.Commands {
		sub.HideHelpCommand = true
		a.quietUsage(sub)
	}
}
