package main

import (
	"bytes"
	"strings"
	"testing"
)

// Wrong arguments of every command end it with exit code 2. One line names the mistake and the value, without control
// characters, and the next one the command for help.
func TestWrongArguments(t *testing.T) {
	type fault struct{ args, says string }
	tests := []fault{
		{"confg", `weir: unknown command "confg" (did you mean config?)`},
		{"\x1b[2J", `weir: unknown command "\x1b[2J"`},
		{"version now", `weir version: "now": takes no arguments`},
		{"config show a b", `weir config: show: "b": only one FILE is allowed`},
		{"config show --profil wfq", "weir config: unknown flag: --profil (did you mean --profile?)"},
		{"bench", "weir bench: must be followed by flood, proxy, usage or affinity"},
		{"bench all", `weir bench: "all": must be flood, proxy, usage or affinity`},
		{"bench flood --samples x", `weir bench flood: --samples: "x": must be a whole number`},
		{"demo --keep-for 5", `weir demo: --keep-for: "5": must be a duration with a unit, such as 30s or 1m30s`},
		{"explain", "weir explain: must be followed by one FILE"},
		{"explain a b", `weir explain: "b": only one FILE is allowed`},
		{"explain a --last", "weir explain: flag needs an argument: --last"},
		{"explain a --last 5", `weir explain: --last: "5": must be a duration with a unit, such as 30s or 1m30s`},
		{"explain a --slowest 0", "weir explain: --slowest: 0: must be from 1 to 1000"},
		{"explain a --output yaml", `weir explain: --output: "yaml": must be one of text, json`},
		{"load --to http://127.0.0.1:1", "weir load: must be followed by one TRACE"},
		{"load --to http://127.0.0.1:1 a b", `weir load: "b": only one TRACE is allowed`},
		{"load --to a b", `weir load: --to: "a": must be http://HOST:PORT or https://HOST:PORT`},
		{"load --to http://127.0.0.1:1 --speed 0 a", "weir load: --speed: 0: must be from 0.001 to 1000"},
		{"replay", "weir replay: must be followed by one FILE"},
		{"replay a b", `weir replay: "b": only one FILE is allowed`},
		{"envoy", "weir envoy: must be followed by endpoints"},
		{"envoy clusters", `weir envoy: "clusters": must be endpoints`},
		{"envoy endpoints a", "weir envoy endpoints: must be followed by the files IN and OUT"},
		{"envoy endpoints a b c", `weir envoy endpoints: "c": only the files IN and OUT are allowed`},
		{"envoy endpoints --grace 1 a b", `weir envoy endpoints: --grace: "1": must be a duration with a unit, such as 30s or 1m30s`},
		{"doctor", "weir doctor: must be followed by ENVOY: a file, -, or the URL of an admin interface"},
		{"doctor a b", `weir doctor: "b": only one ENVOY is allowed`},
		{"doctor a --ignore nobody", `weir doctor: --ignore: "nobody": is not a check; docs/doctor.md lists them`},
		{"status now", `weir status: "now": only flags are allowed`},
	}
	for _, command := range []string{
		"config", "config validate", "demo", "bench flood", "bench proxy", "bench usage", "bench affinity", "doctor", "envoy endpoints", "replay",
		"explain", "simulate", "engine", "load", "status", "top", "tail", "collect", "version",
	} {
		tests = append(tests, fault{command + " --nonsuch", "weir " + strings.TrimSuffix(command, " validate") + ": unknown flag: --nonsuch"})
	}
	for _, test := range tests {
		var stdout, stderr bytes.Buffer
		code := run(strings.Fields(test.args), &stdout, &stderr)
		command, _, _ := strings.Cut(test.says, ":")
		if want := test.says + "\nsee " + command + " --help\n"; code != 2 || stderr.String() != want || stdout.Len() > 0 {
			t.Errorf("%q: exit code %d, want 2: %s%swant %s", test.args, code, &stdout, &stderr, want)
		}
	}
}
