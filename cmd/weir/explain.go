package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/pflag"

	"github.com/weir-epp/weir/cmd/epp/app"
)

const explainUsage = `Usage:
  weir explain FILE --request ID   say in words what became of a request of a recording, and why

FILE is what epp serves at /debug/recording with --record, or - for standard input. ID is the request's x-request-id, or
its number in the recording.
`

// runExplain is `weir explain`.
func runExplain(args []string, stdout, stderr io.Writer) int {
	set := pflag.NewFlagSet("weir explain", pflag.ContinueOnError)
	set.Usage = func() {}
	request := set.String("request", "", "")
	err := set.Parse(args)
	if errors.Is(err, pflag.ErrHelp) {
		_, _ = fmt.Fprint(stdout, explainUsage)
		return 0
	}
	switch {
	case err != nil:
	case set.NArg() != 1:
		err = errors.New("must be followed by one FILE")
	case *request == "":
		err = errors.New("--request: must name a request")
	}
	if err != nil {
		_, _ = fmt.Fprintf(stderr, "weir explain: %v\n%s", err, explainUsage)
		return 2
	}
	if err := explain(set.Arg(0), *request, stdout); err != nil {
		_, _ = fmt.Fprintf(stderr, "weir explain: %s: %v\n", set.Arg(0), err)
		return 1
	}
	return 0
}

func explain(file, request string, stdout io.Writer) error {
	format, err := app.Recordings()
	if err != nil {
		return err
	}
	var words string
	err = replayBounds.replayed(file, func(in io.Reader) (err error) {
		words, err = format.Explain(in, request)
		return err
	})
	if err != nil {
		return err
	}
	_, err = io.WriteString(stdout, words)
	return err
}
