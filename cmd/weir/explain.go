package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/weir-epp/weir/cmd/epp/app"
	"github.com/weir-epp/weir/pkg/recording"
)

const explainUsage = `Usage:
  weir explain FILE --request ID                      explain the wait, the placement and the end of a recorded request
  weir explain FILE --last 5m --flow F --slowest 10   explain the requests that waited longest, with a line for each flow and endpoint
  weir explain FILE --last 70m --until 55m            explain a quarter of an hour, an hour ago

FILE is a recording saved from epp's /debug/recording, the address of its debug port, such as http://localhost:9004, a file of
decision records (decisions.file), or - for standard input. ID is the request's x-request-id, or its number in the recording.
--last, --until, --flow and --slowest are optional; --last and --until count from the end of the recording. With -o json the
output has the records of the decisions, one on each line. The exit code is 1 if FILE cannot be read or has no such request.
`

// explainOptions are the flags of `weir explain`.
type explainOptions struct {
	file, request, flow, output string
	last, until                 time.Duration
	slowest                     int
	warn                        func(text string)
}

// runExplain is `weir explain`.
func runExplain(args []string, stdout, stderr io.Writer) int {
	var o explainOptions
	set := flagSet("weir explain")
	set.StringVar(&o.request, "request", "", "")
	set.StringVar(&o.flow, "flow", "", "")
	set.DurationVar(&o.last, "last", 0, "")
	set.DurationVar(&o.until, "until", 0, "")
	set.IntVar(&o.slowest, "slowest", 10, "")
	set.StringVarP(&o.output, "output", "o", "text", "")
	check := func(others []string) error { return o.check(set, others) }
	if code, ok := readArguments(set, explainUsage, args, check, stdout, stderr); !ok {
		return code
	}
	o.file = set.Arg(0)
	o.warn = func(text string) {
		_, _ = fmt.Fprintf(stderr, "weir explain: %s: WARNING: %s\n", withoutPassword(o.file), text)
	}
	text, err := o.explain()
	if err == nil {
		_, err = stdout.Write(text)
	}
	if err != nil {
		_, _ = fmt.Fprintf(stderr, "weir explain: %s: %v\n", withoutPassword(o.file), err)
		return 1
	}
	return 0
}

// check returns the problem of the arguments, or nil.
func (o *explainOptions) check(set *pflag.FlagSet, others []string) error {
	switch {
	case set.Changed("request") && o.request == "":
		return errors.New("--request: must name a request")
	case o.request != "" && (set.Changed("flow") || set.Changed("last") || set.Changed("until") || set.Changed("slowest")):
		return errors.New("--request: names one request, so --flow, --last, --until and --slowest have no effect")
	case set.Changed("last") && o.last <= 0:
		return fmt.Errorf("--last: %v: must be above 0s", o.last)
	case o.until < 0 || o.last > 0 && o.until >= o.last:
		return fmt.Errorf("--until: %v: must be at least 0s, and less than --last", o.until)
	case o.slowest < 1 || o.slowest > mostExplained:
		return fmt.Errorf("--slowest: %d: must be from 1 to %d", o.slowest, mostExplained)
	case o.output != "text" && o.output != "json":
		return fmt.Errorf("--output: %q: must be one of text, json", o.output)
	default:
		return checkOne(others, "FILE")
	}
}

// mostExplained is the largest number of requests explained at a time.
const mostExplained = 1000

// explain returns the text to print.
func (o *explainOptions) explain() ([]byte, error) {
	file, remove, err := asFile(o.file)
	if err != nil {
		return nil, err
	}
	defer remove()
	if records, err := areRecords(file); records || err != nil {
		if err != nil {
			return nil, err
		}
		return o.explainRecords(file)
	}
	format, err := app.Recordings()
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	requests := []recording.Request{{ID: o.request}}
	if o.request == "" {
		all, err := o.list(format, file)
		if err != nil {
			return nil, err
		}
		list := all.Between(o.window(all.From, all.To))
		slowest := list.Slowest(o.slowest)
		if o.output == "text" {
			o.sayList(&out, list, all, slowest)
		}
		requests = nil
		for _, r := range slowest {
			requests = append(requests, recording.Request{Number: r.Number})
		}
	}
	if len(requests) == 0 {
		return out.Bytes(), nil
	}
	var explained []recording.Explained
	err = replayBounds.replayed(file, func(in io.Reader) (err error) {
		explained, err = format.Explain(in, requests...)
		return err
	})
	for i, e := range explained {
		switch {
		case o.output == "json":
			out.Write(append(e.Record.JSON(), '\n'))
			continue
		case o.request == "" || i > 0:
			out.WriteByte('\n')
		}
		out.WriteString(e.Story)
	}
	return out.Bytes(), err
}

// list lists the requests chosen by --flow.
func (o *explainOptions) list(format *recording.Format, file string) (list *recording.List, err error) {
	var flows []string
	if o.flow != "" {
		flows = app.RecordedFlows(o.flow)
	}
	err = replayBounds.replayed(file, func(in io.Reader) (err error) {
		list, err = format.List(in, flows)
		return err
	})
	return list, err
}

// window returns the part of the time between from and to that --last and --until choose.
func (o *explainOptions) window(from, to time.Time) (begin, end time.Time) {
	begin, end = from, to.Add(-o.until)
	if o.last > 0 && to.Add(-o.last).After(from) {
		begin = to.Add(-o.last)
	}
	return begin, end
}

// mostSpooled is the largest copy of a recording, in bytes: 1 GiB, the largest that an epp keeps, and its checkpoint.
const mostSpooled = 2 << 30

// asFile returns the name of a file that can be read twice: for standard input or an epp's debug port, a copy of the
// recording, until remove is called.
func asFile(name string) (file string, remove func(), err error) {
	if name != "-" && !isURL(name) {
		return name, func() {}, nil
	}
	in, err := source(context.Background(), name, recordingPage)
	if err != nil {
		return "", nil, err
	}
	defer func() { _ = in.Close() }()
	spool, err := os.CreateTemp("", "weir-explain-*")
	if err != nil {
		return "", nil, err
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		if _, ended := <-signals; ended { // a copy has names of flows
			_ = os.Remove(spool.Name())
			os.Exit(1)
		}
	}()
	remove = func() {
		signal.Stop(signals)
		close(signals)
		_ = os.Remove(spool.Name())
	}
	n, err := io.Copy(spool, io.LimitReader(in, mostSpooled+1))
	if err == nil && n > mostSpooled {
		err = fmt.Errorf("more than %d MiB", mostSpooled>>20)
	}
	if err = errors.Join(err, spool.Close()); err != nil {
		remove()
		return "", nil, err
	}
	return spool.Name(), remove, nil
}
