package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/urfave/cli/v3"
)

// onlySubcommands is what a command does that has subcommands alone: it lists them.
func onlySubcommands(_ context.Context, c *cli.Command) error {
	if c.Args().Present() {
		return unknownCommand(c, c.Args().First())
	}
	return cli.ShowSubcommandHelp(c)
}

// twoArgs are the two arguments that a command takes.
func twoArgs(c *cli.Command, what string) (string, string, error) {
	if c.Args().Len() != 2 {
		return "", "", &usageError{command: c.FullName(), err: errors.New(what)}
	}
	return c.Args().Get(0), c.Args().Get(1), nil
}

// noArgs refuses arguments of a command that takes none.
func noArgs(c *cli.Command) error {
	if c.Args().Present() {
		return &usageError{command: c.FullName(), err: fmt.Errorf("it takes no argument, and %q is one", c.Args().First())}
	}
	return nil
}

// withoutArgs makes an action refuse arguments: its command takes none.
func withoutArgs(action cli.ActionFunc) cli.ActionFunc {
	return func(ctx context.Context, c *cli.Command) error {
		if err := noArgs(c); err != nil {
			return err
		}
		return action(ctx, c)
	}
}
