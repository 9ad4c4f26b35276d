package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/pflag"

	"github.com/weir-epp/weir/internal/arguments"
)

const eppFlag = "`path` of the epp binary (default the one beside weir)"

// flagSet is a command's flags, in the order in which they are added.
func flagSet(name string) *pflag.FlagSet {
	set := pflag.NewFlagSet(name, pflag.ContinueOnError)
	set.SortFlags = false
	set.Usage = func() {}
	return set
}

// readFlags parses arguments that consist of flags only, then calls check to validate their values. If ok is false the
// command is over, with the returned exit code: help was requested, or the arguments are wrong.
func readFlags(
	set *pflag.FlagSet, about string, args []string, check func() error, stdout, stderr io.Writer,
) (code int, ok bool) {
	help := fmt.Sprintf("Usage:\n  %s [flags]\n\n%s\nFlags:\n%s", set.Name(), about, set.FlagUsagesWrapped(120))
	err := arguments.Explain(set, set.Parse(args))
	if errors.Is(err, pflag.ErrHelp) {
		_, _ = fmt.Fprint(stdout, help)
		return 0, false
	}
	if err == nil && set.NArg() > 0 {
		err = arguments.Unexpected(set, set.Arg(0), args)
	}
	if err == nil {
		err = check()
	}
	if err != nil {
		_, _ = fmt.Fprintf(stderr, "%s: %v\n%s --help lists the flags\n", set.Name(), err, set.Name())
		return 2, false
	}
	return 0, true
}
