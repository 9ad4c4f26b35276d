// Command weir is the operator's tool: it shows and checks configurations, demonstrates what Weir does, and measures it.
// `weir help` lists what it can do.
package main

import (
	"fmt"
	"io"
	"os"
)

// command is one subcommand. run returns the exit code: 0 for success, 1 for a failure, 2 for arguments that cannot be
// read. One without a summary is weir's own: it starts itself so, and help does not list it.
type command struct {
	name    string
	summary string
	run     func(args []string, stdout, stderr io.Writer) int
}

// commands are all subcommands, in the order in which help lists them.
func commands() []command {
	return []command{
		{"config", "show a profile or a file in full, or check a file", runConfig},
		{"demo", "a noisy tenant beside a quiet one, then a bulk flood beside interactive requests, each without and with; 80 s", runDemo},
		{"bench", "measure a flood beside a quiet tenant, or what Weir costs", runBench},
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
	switch args[0] {
	case "help", "-h", "--help":
		help(stdout)
		return 0
	}
	for _, c := range commands() {
		if c.name == args[0] {
			return c.run(args[1:], stdout, stderr)
		}
	}
	_, _ = fmt.Fprintf(stderr, "weir: unknown command %q\n", args[0])
	help(stderr)
	return 2
}

func help(w io.Writer) {
	_, _ = fmt.Fprint(w, "weir is the operator's tool of Weir, the endpoint picker.\n\nCommands:\n")
	for _, c := range commands() {
		if c.summary == "" {
			continue
		}
		_, _ = fmt.Fprintf(w, "  weir %-10s %s\n", c.name, c.summary)
	}
	_, _ = fmt.Fprint(w, "\n`weir COMMAND --help` tells more.\n")
}
