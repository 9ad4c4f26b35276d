package main

import (
	"errors"
	"fmt"
	"io"
)

const benchHelp = `Usage:
  weir bench flood [flags]      the throughput and a quiet tenant's latency under a flood
  weir bench proxy [flags]      the cost of Weir, compared with Envoy alone and with a processor that does nothing
  weir bench usage [flags]      the cost of usage, which Envoy reads from the answers
  weir bench affinity [flags]   the cost of comparing prompts

Each benchmark starts Envoy, epp and simulated model servers on loopback, and stops them at its end. weir bench NAME --help
lists its flags.
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
	case "affinity":
		return runBenchAffinity(args[1:], stdout, stderr)
	case "usage":
		return runBenchUsage(args[1:], stdout, stderr)
	case "help", "-h", "--help":
		_, _ = fmt.Fprint(stdout, benchHelp)
		return 0
	case "":
		return misused(stderr, "weir bench", errors.New("must be followed by flood, proxy, usage or affinity"))
	default:
		return misused(stderr, "weir bench", fmt.Errorf("%q: must be flood, proxy, usage or affinity", what))
	}
}
