package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/weir-epp/weir/internal/collect"
	"github.com/weir-epp/weir/internal/version"
)

const collectAbout = `Write the state of all replicas and of the Envoy in front of them to one tar, for a colleague or a bug report: status,
configuration, metrics, recording and Envoy's configuration. It leaves out the secrets that it recognises, and writes hashes
instead of names of flows and tenants. Check the tar before you send it.

Exit code 0: written; manifest.json and standard error list the parts that could not be read. 1: the tar cannot be written. 2: no
epp can be reached, and nothing is written, or wrong arguments.
`

// runCollect is `weir collect`.
func runCollect(args []string, stdout, stderr io.Writer) int {
	set, o := flagSet("weir collect"), collect.Options{Bounded: replayBounds.within}
	set.StringSliceVar(&o.Addresses, "address", []string{"localhost:9004"}, "`addresses` of the debug ports of all replicas (--debug-port), by comma")
	set.StringSliceVar(&o.Metrics, "metrics-address", []string{"localhost:9090"}, "`addresses` of their metrics ports, separated by commas; empty: none")
	set.StringSliceVar(&o.Envoy, "envoy-address", []string{"localhost:9901"}, "`addresses` of the admin interfaces of Envoys, separated by commas; empty: none")
	set.BoolVar(&o.Names, "flow-names", false, "keep the names of flows and tenants, and the recording of an epp of any build")
	out := set.String("out", "", "`file` to write, - for standard output (default weir-collect-TIME.tar)")
	check := func() error { return checkAddresses(o.Addresses) }
	if code, ok := readFlags(set, collectAbout, args, check, stdout, stderr); !ok {
		return code
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	now := time.Now()
	files, reached := collect.Collect(ctx, &o)
	for _, f := range files {
		if f.Err != "" {
			_, _ = fmt.Fprintf(stderr, "weir collect: %s: %s\n", f.From, f.Err)
		}
	}
	if !reached {
		_, _ = fmt.Fprintln(stderr, "weir collect: no epp answers at an --address: nothing is written")
		return 2
	}
	if *out == "" {
		*out = "weir-collect-" + now.UTC().Format("20060102T150405Z") + ".tar"
	}
	if err := writeCollected(*out, stdout, files, o.Names, now); err != nil {
		_, _ = fmt.Fprintf(stderr, "weir collect: %v\n", err)
		return 1
	}
	if *out != "-" {
		_, _ = fmt.Fprintln(stdout, *out)
	}
	return 0
}

// writeCollected writes a new file that only its owner can read.
func writeCollected(name string, stdout io.Writer, files []collect.File, names bool, now time.Time) error {
	if name == "-" {
		return collect.Write(stdout, files, names, fmt.Sprint(version.Info()), now)
	}
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	if err := collect.Write(file, files, names, fmt.Sprint(version.Info()), now); err != nil {
		_ = file.Close()
		return err
	}
	return file.Close()
}
