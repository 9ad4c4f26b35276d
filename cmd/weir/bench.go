package main

import (
	"fmt"
	"io"
)

const benchUsage = `Usage:
  weir bench flood [flags]   a flood beside a quiet tenant: throughput, and the quiet one's latency
  weir bench proxy [flags]   what Weir costs beside Envoy alone and beside a processor that does nothing

Each starts Envoy, epp and simulated model servers on loopback, and stops them. --help after flood or proxy lists its flags.
`

// runBench is `weir bench`.
func runBench(args []string, stdout, stderr io.Writer) int {
	what := ""
	if len(args) > 0 {
		what = args[0]
	}
	switch what {
	case "flood":
		return runBenchFlood(args[1:], stdout, stderr)
	case "proxy":
		return runBenchProxy(args[1:], stdout, stderr)
	case "help", "-h", "--help":
		_, _ = fmt.Fprint(stdout, benchUsage)
		return 0
	case "":
		_, _ = fmt.Fprint(stderr, benchUsage)
	default:
		_, _ = fmt.Fprintf(stderr, "weir bench: unknown benchmark %q\n%s", what, benchUsage)
	}
	return 2
}
