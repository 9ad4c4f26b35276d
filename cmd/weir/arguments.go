package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/pflag"

	"github.com/weir-epp/weir/internal/arguments"
)

const eppFlag = "`path` of the epp binary (default the one in weir's directory)"

// flagSet is a command's flags, in the order in which they are added.
func flagSet(name string) *pflag.FlagSet {
	set := pflag.NewFlagSet(name, pflag.ContinueOnError)
	set.SortFlags = false
	set.Usage = func() {}
	return set
}

// readFlags is readArguments for arguments that consist of flags only.
func readFlags(
	set *pflag.FlagSet, about string, args []string, check func() error, stdout, stderr io.Writer,
) (code int, ok bool) {
	help := fmt.Sprintf("Usage:\n  %s [flags]\n\n%s\nFlags:\n%s", set.Name(), about, set.FlagUsagesWrapped(120))
	return readArguments(set, help, args, func(others []string) error {
		if len(others) > 0 {
			return arguments.Unexpected(set, others[0], args)
		}
		return check()
	}, stdout, stderr)
}

// readArguments parses flags, then calls check to validate their values and the other arguments. If ok is false the
// command ends with the returned exit code: help was requested, perhaps by check, or the arguments are wrong.
func readArguments(
	set *pflag.FlagSet, help string, args []string, check func(others []string) error, stdout, stderr io.Writer,
) (code int, ok bool) {
	err := arguments.Explain(set, set.Parse(args))
	if err == nil {
		err = check(set.Args())
	}
	switch {
	case errors.Is(err, pflag.ErrHelp):
		_, _ = fmt.Fprint(stdout, help)
		return 0, false
	case err != nil:
		return misused(stderr, set.Name(), err), false
	default:
		return 0, true
	}
}

// misused prints what is wrong with the arguments of a command, and returns its exit code.
func misused(stderr io.Writer, command string, err error) int {
	_, _ = fmt.Fprintf(stderr, "%s: %s\nsee %s --help\n", command, printableLines(err.Error()), command)
	return 2
}

// checkOne returns the problem of arguments that are not exactly one, or nil.
func checkOne(others []string, what string) error {
	switch len(others) {
	case 0:
		return fmt.Errorf("must be followed by one %s", what)
	case 1:
		return nil
	default:
		return fmt.Errorf("%q: only one %s is allowed", others[1], what)
	}
}
