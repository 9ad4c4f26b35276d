package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/weir-epp/weir/internal/config"
)

const configUsage = `Usage:
  weir config show [--profile NAME] [FILE]   print a profile in full, or what a FILE makes of its profile
  weir config validate FILE                  report every problem of a FILE; exit code 1 if there is one
  weir config import --from smg FILE         print the FILE of SMG's priority scheduler as ours; notes go to stderr

FILE is - for standard input. Profiles: `

// runConfig is `weir config`.
func runConfig(args []string, stdout, stderr io.Writer) int {
	set := pflag.NewFlagSet("weir config", pflag.ContinueOnError)
	set.Usage = func() {}
	profile := set.String("profile", "", "")
	from := set.String("from", "", "")
	err := set.Parse(args)
	usage := configUsage + strings.Join(config.Profiles(), ", ") + "\n"
	if errors.Is(err, pflag.ErrHelp) {
		_, _ = fmt.Fprint(stdout, usage)
		return 0
	}
	switch rest := set.Args(); {
	case err != nil:
		_, _ = fmt.Fprintf(stderr, "weir config: %v\n%s", err, usage)
		return 2
	case len(rest) == 2 && rest[0] == "import" && importers[*from] != nil && *profile == "":
		return importConfig(*from, rest[1], stdout, stderr)
	case *from != "":
		_, _ = fmt.Fprint(stderr, usage)
		return 2
	case len(rest) >= 1 && len(rest) <= 2 && rest[0] == "show":
		return showConfig(*profile, strings.Join(rest[1:], ""), stdout, stderr)
	case len(rest) == 2 && rest[0] == "validate" && *profile == "":
		return validateConfig(rest[1], stdout, stderr)
	default:
		_, _ = fmt.Fprint(stderr, usage)
		return 2
	}
}

// showConfig prints a document in full. It does not ask whether this build acts upon all of it: a profile is shown as
// it is.
func showConfig(profile, file string, stdout, stderr io.Writer) int {
	var text []byte
	var err error
	if file != "" {
		if text, err = readInput(file); err != nil {
			return failed(stderr, err)
		}
	}
	d, err := config.Show(config.Source{Text: text, Profile: profile})
	if err != nil {
		return failed(stderr, err)
	}
	full, err := d.Marshal()
	if err != nil {
		return failed(stderr, err)
	}
	_, _ = stdout.Write(full)
	return 0
}

func validateConfig(file string, stdout, stderr io.Writer) int {
	text, err := readInput(file)
	if err != nil {
		return failed(stderr, err)
	}
	d, err := config.Load(config.Source{Text: text})
	if err != nil {
		return failed(stderr, fmt.Errorf("%s: %w", file, err))
	}
	for _, w := range d.Warnings() {
		_, _ = fmt.Fprintf(stdout, "%s: warning: %v\n", file, w)
	}
	_, _ = fmt.Fprintf(stdout, "%s: valid (profile %s)\n", file, d.Profile)
	return 0
}

func failed(stderr io.Writer, err error) int {
	_, _ = fmt.Fprintf(stderr, "weir config: %v\n", err)
	return 1
}

// readInput reads a file, or standard input for "-".
func readInput(file string) ([]byte, error) {
	if file == "-" {
		return io.ReadAll(os.Stdin)
	}
	return os.ReadFile(file)
}
