// Command weir is the operator's tool: it shows and checks configurations, and demonstrates and measures Weir. `weir
// help` lists its commands.
package main

import (
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/weir-epp/weir/internal/spelling"
	"github.com/weir-epp/weir/internal/version"
)

// command is one subcommand. run returns the exit code: 0 for success, 1 for a failure, 2 for bad arguments. A command
// without a summary is internal: only weir itself starts it, and help does not list it.
type command struct {
	name    string
	summary string
	run     func(args []string, stdout, stderr io.Writer) int
}

// commands are all subcommands, in the order in which help lists them.
func commands() []command {
	return []command{
		{"config", "show or check a configuration, or import another router's", runConfig},
		{"demo", "run a noisy and a quiet tenant, then bulk and interactive requests, without and with Weir; takes 80 s", runDemo},
		{"bench", "measure the effect of a flood on a quiet tenant, or the cost of Weir", runBench},
		{"doctor", "find known mistakes in the configuration of Envoy, together with Weir's, and in a cluster", runDoctor},
		{"envoy", "write Envoy's endpoints from epp's endpoints file, and follow its changes", runEnvoy},
		{"replay", "repeat the decisions of a recording, and compare the results", runReplay},
		{"explain", "explain the wait of a request in a recording, the requests before it, and its endpoint", runExplain},
		{"simulate", "run a workload, a trace or a recording with other configurations and simulated engines, in virtual time", runSimulate},
		{"engine", "serve a simulated engine over HTTP, with vLLM's API, to measure any endpoint picker", runEngine},
		{"load", "send the requests of a trace to an API, with prompts that share the trace's blocks, and print the result", runLoad},
		{"status", "print the state of an epp once: pool, tiers, engines, flows, last rejections; exit 0, 1 or 2", runStatus},
		{"top", "show the state of an epp on the whole terminal, and refresh it", runTop},
		{"tail", "print a line for each request that ends, until ^C", runTail},
		{"collect", "write status, configuration, metrics, recording and Envoy's dump into one tar, without known secrets", runCollect},
		{"version", "print the version", runVersion},
		{"noop-processor", "", runNoopProcessor},
		{"model-servers", "", runModelServers},
	}
}

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		help(stderr)
		return 2
	}
	name, rest := args[0], args[1:]
	asked := slices.Contains([]string{"help", "-h", "--help"}, name)
	switch {
	case asked && (len(rest) == 0 || rest[0] == "help"):
		help(stdout)
		return 0
	case asked:
		name, rest = rest[0], append(slices.Clone(rest[1:]), "--help")
	case name == "--version":
		name = "version"
	}
	for _, c := range commands() {
		if c.name == name && (c.summary != "" || !asked) {
			return c.run(rest, stdout, stderr)
		}
	}
	return misused(stderr, "weir", fmt.Errorf("unknown command %q%s", name, spelling.Suggest(name, listed())))
}

// listed returns the names of the commands that help lists.
func listed() []string {
	var names []string
	for _, c := range commands() {
		if c.summary != "" {
			names = append(names, c.name)
		}
	}
	return names
}

func help(w io.Writer) {
	_, _ = fmt.Fprint(w, "weir is the operator's tool of Weir, the endpoint picker.\n\nCommands:\n")
	for _, c := range commands() {
		if c.summary == "" {
			continue
		}
		_, _ = fmt.Fprintf(w, "  weir %-10s %s\n", c.name, c.summary)
	}
	_, _ = fmt.Fprint(w, "\n`weir help COMMAND` has more.\n")
}

// runVersion is `weir version`.
func runVersion(args []string, stdout, stderr io.Writer) int {
	const usage = "Usage:\n  weir version   print the version of this binary\n"
	check := func(others []string) error {
		if len(others) > 0 {
			return fmt.Errorf("%q: takes no arguments", others[0])
		}
		return nil
	}
	code, ok := readArguments(flagSet("weir version"), usage, args, check, stdout, stderr)
	if ok {
		_, _ = fmt.Fprintln(stdout, "weir", version.Info())
	}
	return code
}
