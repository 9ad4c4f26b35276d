package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/weir-epp/weir/internal/config"
	"github.com/weir-epp/weir/internal/printable"
	"github.com/weir-epp/weir/pkg/datastore"
	"github.com/weir-epp/weir/pkg/scheduling"
)

const configUsage = `Usage:
  weir config show [--profile NAME] [FILE]     print a profile, or the configuration of a FILE, with all defaults
  weir config validate [--profile NAME] FILE   report every problem of a FILE; exit code 1 if there are any
  weir config validate --endpoints FILE        the same for a FILE with the model servers (epp's --endpoints-file)
  weir config validate --endpoints FILE FILE   for both, with warnings if the configuration's models or reservations do
                                               not suit the model servers
  weir config import --from smg FILE           convert the FILE of SMG's priority scheduler to Weir's; notes go to stderr
  weir config import --from dynamo FILE        the same for the FILE of Dynamo's policy-class queues
  weir config import --from mindrouter FILE    the same for a FILE with the environment variables of MindRouter
  weir config import --from llm-d [--beside RELEASE] FILE
                                               the same for the EndpointPickerConfig of llm-d or GIE (--from gie), or the
                                               values of their charts, for Weir's chart; with --beside it uses the
                                               InferencePool and HTTPRoute of their RELEASE instead of new ones
  weir config import --from litellm [--endpoints OUT] FILE
                                               the same for the FILE of LiteLLM's proxy; OUT gets its engines, for epp's
                                               --endpoints-file
  weir config import --from production-stack [--endpoints OUT] FILE
                                               the same for a FILE with the arguments of production-stack's router, or its
                                               dynamic configuration

FILE is - for standard input. --profile overrides the profile of a FILE, as in epp. --output OUT writes the output of show or
import to a new file OUT, but only without errors: with > an error leaves an empty file, which is a valid configuration.
Profiles: `

// runConfig is `weir config`.
func runConfig(args []string, stdout, stderr io.Writer) int {
	set := flagSet("weir config")
	profile := set.String("profile", "", "")
	from := set.String("from", "", "")
	endpoints := set.String("endpoints", "", "")
	beside := set.String("beside", "", "")
	output := set.String("output", "", "")
	check := func(others []string) error {
		if set.Arg(0) == "help" {
			return pflag.ErrHelp
		}
		err := checkConfigArguments(others, *profile, *from, *endpoints, set.Changed("endpoints"))
		if err == nil && set.Changed("beside") {
			err = checkBeside(others[0], *from, *beside)
		}
		if err == nil && set.Changed("output") {
			err = checkOutput(others[0], *output)
		}
		return err
	}
	if code, ok := readArguments(set, configUsage+config.ProfileList()+"\n", args, check, stdout, stderr); !ok {
		return code
	}
	var text bytes.Buffer
	code := 0
	switch command, file := set.Arg(0), set.Arg(1); command {
	case "show":
		code = showConfig(*profile, file, &text, stderr)
	case "validate":
		code = validateFiles(*profile, file, *endpoints, &text, stderr)
	default:
		code = importConfig(*from, file, *endpoints, *beside, &text, stderr)
	}
	if *output == "" || code != 0 {
		_, _ = text.WriteTo(stdout)
		return code
	}
	if err := writeNew(*output, text.Bytes()); err != nil {
		if *endpoints != "" {
			_ = os.Remove(*endpoints) // which import has just made
		}
		return failed(stderr, fmt.Errorf("--output: %w", err))
	}
	return 0
}

// checkConfigArguments returns the problems of the arguments of `weir config COMMAND FILE`, or nil.
func checkConfigArguments(args []string, profile, from, endpoints string, withEndpoints bool) error {
	const known = "show, validate or import"
	if len(args) == 0 {
		return errors.New("must be followed by " + known)
	}
	command, files := args[0], args[1:]
	systems := strings.Join(slices.Sorted(maps.Keys(importers)), ", ")
	switch {
	case !slices.Contains([]string{"show", "validate", "import"}, command):
		return fmt.Errorf("%q: must be %s", command, known)
	case profile != "" && command == "import":
		return fmt.Errorf("--profile: %q: is for show and validate only", profile)
	case from != "" && command != "import":
		return fmt.Errorf("--from: %q: is for import only", from)
	case withEndpoints && command == "show":
		return errors.New("--endpoints: is for validate and import only")
	case withEndpoints && command == "import" && !importers[from].engines:
		return fmt.Errorf("--endpoints: --from %s: its file has no engines", from)
	case withEndpoints && endpoints == "":
		return errors.New("--endpoints: must name a FILE")
	case withEndpoints && profile != "" && len(files) == 0:
		return fmt.Errorf("--profile: %q: an endpoints file has no profile", profile)
	case withEndpoints && len(files) == 1 && endpoints == "-" && files[0] == "-":
		return errors.New("--endpoints: only one FILE can be standard input")
	case command == "import" && from == "":
		return fmt.Errorf("import: --from must name the system that the FILE comes from: %s", systems)
	case command == "import" && importers[from].read == nil:
		return fmt.Errorf("--from: %q: must be %s", from, systems)
	case command == "import" && len(files) == 0, command == "validate" && len(files) == 0 && !withEndpoints:
		return fmt.Errorf("%s: must be followed by a FILE", command)
	case len(files) > 1:
		return fmt.Errorf("%s: %q: only one FILE is allowed", command, files[1])
	}
	return nil
}

// checkOutput returns the problem of --output, or nil.
func checkOutput(command, output string) error {
	switch {
	case command == "validate":
		return fmt.Errorf("--output: %q: is for show and import only", output)
	case output == "":
		return errors.New("--output: must name a FILE")
	default:
		return nil
	}
}

// longestRelease is the length of the longest name of a release that Helm takes.
const longestRelease = 53

// checkBeside returns the problem of --beside, or nil.
func checkBeside(command, from, release string) error {
	switch {
	case command != "import" || !importers[from].chart:
		return errors.New("--beside: is for import --from llm-d and --from gie only")
	case release == "":
		return errors.New("--beside: must name a RELEASE")
	case len(release) > longestRelease || len(validation.IsDNS1123Subdomain(release)) > 0:
		return fmt.Errorf("--beside: %q: must be the name of a release of Helm's: at most %d of a-z, 0-9, - and ., with a letter or digit "+
			"at either end", release, longestRelease)
	}
	return nil
}

// showConfig prints a document in full. It does not check whether this build implements all of it: a profile is shown
// as it is.
func showConfig(profile, file string, stdout, stderr io.Writer) int {
	var text []byte
	var err error
	if file != "" {
		if text, err = readInput(file); err != nil {
			return failed(stderr, err)
		}
	}
	d, err := config.Load(config.Source{Text: text, Profile: profile})
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

// validateFiles checks a configuration, a file with endpoints, or both and their effect on each other. A file that is
// not named is "".
func validateFiles(profile, file, endpointsFile string, stdout, stderr io.Writer) int {
	var endpoints []scheduling.Endpoint
	var d config.Document
	var problems []error
	if endpointsFile != "" {
		var err error
		if endpoints, err = readEndpoints(endpointsFile); err != nil {
			problems = append(problems, err)
		}
	}
	if file != "" {
		var err error
		if d, err = readConfig(profile, file); err != nil {
			problems = append(problems, err)
		}
	}
	if err := errors.Join(problems...); err != nil {
		return failed(stderr, err)
	}
	warn := func(of string, ws []config.Problem) {
		for _, w := range ws {
			_, _ = fmt.Fprintf(stdout, "%s: warning: %v\n", of, w)
		}
	}
	if file != "" {
		warn(file, d.Warnings())
		warn(file, d.EndpointWarnings(endpoints))
		warn(file, d.ReservationWarnings(endpoints))
		_, _ = fmt.Fprintf(stdout, "%s: valid (profile %s)\n", file, d.Profile)
	}
	if endpointsFile != "" {
		_, _ = fmt.Fprintf(stdout, "%s: valid (endpoints: %d)\n", endpointsFile, len(endpoints))
	}
	return 0
}

func readConfig(profile, file string) (config.Document, error) {
	text, err := readInput(file)
	if err != nil {
		return config.Document{}, err
	}
	d, err := config.Load(config.Source{Text: text, Profile: profile})
	if err == nil {
		return d, nil
	}
	if _, other := datastore.DecodeEndpoints(text); other == nil {
		err = fmt.Errorf("%w\nIt is a valid file with endpoints: weir config validate --endpoints %s", err, file)
	}
	return d, fmt.Errorf("%s: %w", file, err)
}

func readEndpoints(file string) ([]scheduling.Endpoint, error) {
	text, err := readAtMost(file, datastore.MaxFileBytes) // epp would refuse a larger one without reading
	if err != nil {
		return nil, err
	}
	endpoints, err := datastore.DecodeEndpoints(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return endpoints, nil
}

// failed prints an error, which may have names of a stranger's file.
func failed(stderr io.Writer, err error) int {
	_, _ = fmt.Fprintf(stderr, "weir config: %s\n", printableLines(err.Error()))
	return 1
}

// printableLines returns a text with printable lines only.
func printableLines(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = printable.Text(lines[i])
	}
	return strings.Join(lines, "\n")
}

// largestInput is the size in bytes of the largest file that is read whole, four times that of the largest ConfigMap.
const largestInput = 4 << 20

// readInput reads a file of at most largestInput bytes, or standard input for "-".
func readInput(file string) ([]byte, error) { return readAtMost(file, largestInput) }

// readAtMost reads a file of at most most bytes, or standard input for "-". The file may be a pipe.
func readAtMost(file string, most int64) ([]byte, error) {
	name, in := "standard input", os.Stdin
	if file != "-" {
		opened, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		defer func() { _ = opened.Close() }()
		name, in = file, opened
	}
	text, err := io.ReadAll(io.LimitReader(in, most+1))
	if err != nil {
		return nil, err
	}
	if int64(len(text)) > most {
		return nil, fmt.Errorf("%s: is larger than %d bytes", name, most)
	}
	return text, nil
}

// importer converts another system's configuration to a document, with notes for the operator.
type importer struct {
	read    func(text []byte) (config.Imported, error)
	engines bool // its files may list the engines
	chart   bool // a chart installs it, whose values are read too
}

// importers has the systems by the names of --from.
var importers = map[string]importer{
	"dynamo":           {read: config.ImportDynamo},
	"gie":              {read: config.ImportLLMD, chart: true},
	"litellm":          {read: config.ImportLiteLLM, engines: true},
	"llm-d":            {read: config.ImportLLMD, chart: true},
	"mindrouter":       {read: config.ImportMindRouter},
	"production-stack": {read: config.ImportProductionStack, engines: true},
	"smg":              {read: config.ImportSMG},
}

// importConfig prints another system's configuration as ours on stdout, and the notes on stderr. It writes the engines into
// a new file, unless endpoints is "". Values are those of a release beside another one, unless beside is "".
func importConfig(from, file, endpoints, beside string, stdout, stderr io.Writer) int {
	text, err := readInput(file)
	if err != nil {
		return failed(stderr, err)
	}
	imported, err := importers[from].read(text)
	if err != nil {
		return failed(stderr, fmt.Errorf("%s: %w", file, err))
	}
	if beside != "" {
		if err := imported.Beside(beside); err != nil {
			return failed(stderr, fmt.Errorf("--beside: %s: %w", file, err))
		}
	}
	ours, err := imported.Marshal()
	if err != nil {
		return failed(stderr, err)
	}
	switch {
	case endpoints != "":
		text, err := config.MarshalEngines(imported.Engines)
		if err == nil {
			err = writeNew(endpoints, text)
		}
		if err != nil {
			return failed(stderr, fmt.Errorf("--endpoints: %w", err))
		}
	case len(imported.Engines) > 0:
		imported.Notes = append(imported.Notes, "--endpoints OUT writes its engines into a file for epp's --endpoints-file")
	}
	for _, note := range imported.Notes {
		_, _ = fmt.Fprintf(stderr, "%s: note: %s\n", file, printableLine(note))
	}
	_, _ = stdout.Write(ours)
	return 0
}

// writeNew writes a text into a file that must not exist, and exists after an error no more than before.
func writeNew(name string, text []byte) error {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	if err = errors.Join(err, file.Close()); err != nil {
		_ = os.Remove(name)
	}
	return err
}

// printableLine returns a text as a single printable line.
func printableLine(text string) string {
	return printable.Text(strings.NewReplacer("\r\n", " ", "\n", " ", "\r", " ", "\t", " ").Replace(text))
}
