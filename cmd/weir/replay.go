package main

import (
	"fmt"
	"io"
	"time"

	"github.com/weir-epp/weir/cmd/epp/app"
	"github.com/weir-epp/weir/pkg/recording"
)

const replayUsage = `Usage:
  weir replay FILE   repeat the decisions of a recording, and compare each with the recorded one

FILE is a recording saved from epp's /debug/recording, http://HOST:PORT of its debug port, or - for standard input. The epp and
weir must be of the same build. The exit code is 1 if a decision differs; weir then prints the recorded and the repeated
decision.
`

// runReplay is `weir replay`.
func runReplay(args []string, stdout, stderr io.Writer) int {
	set := flagSet("weir replay")
	check := func(others []string) error { return checkOne(others, "FILE") }
	if code, ok := readArguments(set, replayUsage, args, check, stdout, stderr); !ok {
		return code
	}
	if err := replay(set.Arg(0), stdout); err != nil {
		_, _ = fmt.Fprintf(stderr, "weir replay: %s: %v\n", withoutPassword(set.Arg(0)), err)
		return 1
	}
	return 0
}

func replay(file string, stdout io.Writer) error {
	format, err := app.Recordings()
	if err != nil {
		return err
	}
	var s recording.Summary
	err = replayBounds.replayed(file, func(in io.Reader) (err error) {
		s, err = format.Replay(in)
		return err
	})
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(stdout, "%d events in %v, %d of them arrivals: all %d verdicts are as recorded\n",
		s.Events, s.To.Sub(s.From).Round(time.Millisecond), s.Arrivals, s.Verdicts)
	return nil
}
