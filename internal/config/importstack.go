package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/weir-epp/weir/internal/spelling"
)

// stackInstead has Weir's place of each argument of production-stack's router that is not converted.
var stackInstead = map[string]string{
	"host":                                 "Envoy is where clients connect",
	"port":                                 "Envoy is where clients connect",
	"k8s-service-discovery-type":           "",
	"k8s-watcher-timeout-seconds":          "",
	"k8s-port":                             "--endpoint-target-ports, or the InferencePool's targetPorts",
	"k8s-namespace":                        "--pool-namespace",
	"k8s-label-selector":                   "--endpoint-selector, or the InferencePool's selector",
	"backend-health-check-timeout-seconds": "--probe-path",
	"static-backend-health-checks":         "--probe-path",
	"static-model-types":                   "engines state their abilities (docs/endpoints.md#what-engines-can-do)",
	"lmcache-controller-port":              "Weir compares prompts by their text, and asks no controller",
	"lmcache-health-check-interval":        "Weir compares prompts by their text, and asks no controller",
	"lmcache-worker-timeout":               "Weir compares prompts by their text, and asks no controller",
	"kv-aware-threshold":                   "Weir compares prompts by their text, and asks no controller",
	"callbacks":                            "",
	"request-rewriter":                     "",
	"enable-batch-api":                     "",
	"file-storage-class":                   "",
	"file-storage-path":                    "",
	"batch-processor":                      "",
	"engine-stats-interval":                "--scrape-path is asked every second",
	"request-stats-window":                 "",
	"log-stats":                            "weir top, and metrics",
	"log-stats-interval":                   "weir top, and metrics",
	"dynamic-config-yaml":                  "import that file; --config-file and --endpoints-file are followed",
	"dynamic-config-json":                  "import that file; --config-file and --endpoints-file are followed",
	"version":                              "",
	"feature-gates":                        "",
	"semantic-cache-model":                 "",
	"semantic-cache-dir":                   "",
	"semantic-cache-threshold":             "",
	"log-level":                            "--v",
	"sentry-dsn":                           "",
	"sentry-traces-sample-rate":            "",
	"sentry-profile-session-sample-rate":   "",
	"otel-endpoint":                        "OTEL_EXPORTER_OTLP_ENDPOINT",
	"otel-service-name":                    "OTEL_SERVICE_NAME",
	"otel-secure":                          "the scheme of OTEL_EXPORTER_OTLP_ENDPOINT",
}

// stackConverted are the arguments that are converted.
var stackConverted = []string{
	"service-discovery", "static-backends", "static-models", "static-aliases", "static-model-labels", "routing-logic", "session-key",
	"prefill-model-labels", "decode-model-labels",
}

// ImportProductionStack converts the arguments of the router of vLLM's production-stack to a document over the recommended
// profile, and its static backends to engines. The text is a command line or script with the arguments, or the dynamic
// configuration in YAML or JSON. An impossible value of an argument that is converted is an error with its name; the error is
// Problems and lists all of them.
func ImportProductionStack(text []byte) (Imported, error) {
	im := stackImport{arguments: map[string]string{}}
	var err error
	if im.Document, err = Profile(ProfileRecommended); err != nil {
		return Imported{}, err
	}
	if root, problems := parseYAML(text); len(problems) == 0 && root != nil && root.Kind == yaml.MappingNode {
		im.readConfig(root)
	} else {
		im.readArguments(string(text))
	}
	if len(im.names) == 0 {
		im.problems = append(im.problems, Problem{Message: "has no arguments of vLLM's router, such as --routing-logic"})
	}
	im.convert()
	if len(im.problems) > 0 {
		return Imported{}, im.problems.err()
	}
	if err := im.Document.Validate(); err != nil {
		return Imported{}, err
	}
	im.tell()
	return im.Imported, nil
}

// stackImport is the state of an import.
type stackImport struct {
	Imported
	names     []string // in their order
	arguments map[string]string
	problems  Problems
}

func (im *stackImport) set(name, value string) {
	name = strings.ReplaceAll(name, "_", "-")
	if _, ok := im.arguments[name]; !ok {
		im.names = append(im.names, name)
	}
	im.arguments[name] = value
}

// readArguments reads a command line: lines of comments are left out, quotes and backslashes at line ends too, and what is
// no --name, or the value of one, is the command.
func (im *stackImport) readArguments(text string) {
	var words []string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line = strings.TrimPrefix(line, "- "); !strings.HasPrefix(line, "#") {
			words = append(words, strings.Fields(strings.TrimSuffix(line, `\`))...)
		}
	}
	for i := 0; i < len(words); i++ {
		name, ok := strings.CutPrefix(unquotedWord(words[i]), "--")
		if !ok {
			continue
		}
		if name, value, ok := strings.Cut(name, "="); ok {
			im.set(name, unquotedWord(value))
			continue
		}
		value := ""
		if i+1 < len(words) && !strings.HasPrefix(unquotedWord(words[i+1]), "--") {
			i++
			value = unquotedWord(words[i])
		}
		im.set(name, value)
	}
}

func unquotedWord(word string) string { return strings.Trim(word, `"'`) }

// readConfig reads a dynamic configuration, whose static models may be a mapping.
func (im *stackImport) readConfig(root *yaml.Node) {
	var file map[string]any
	if err := root.Decode(&file); err != nil {
		im.problems = Problems{{Message: "not a configuration of vLLM's router: " + err.Error()}}
		return
	}
	for _, name := range orderOf(root) {
		switch value := file[name].(type) {
		case map[string]any:
			im.mapping(name, value)
		default:
			im.set(name, fmt.Sprint(value))
		}
	}
}

// orderOf returns the keys of a mapping in the order of the file, merged ones last.
func orderOf(root *yaml.Node) (names []string) {
	var all map[string]any
	if root.Decode(&all) != nil {
		return nil
	}
	for _, name := range keysOf(root) {
		if name != mergeKey {
			names = append(names, name)
			delete(all, name)
		}
	}
	return append(names, slices.Sorted(maps.Keys(all))...)
}

// mapping reads the mappings of a YAML file: models with their backends, and aliases.
func (im *stackImport) mapping(name string, value map[string]any) {
	var backends, models, aliases []string
	for _, key := range slices.Sorted(maps.Keys(value)) {
		switch of := value[key].(type) {
		case string:
			aliases = append(aliases, key+":"+of)
		case map[string]any:
			list, _ := of["static_backends"].([]any)
			for _, backend := range list {
				backends, models = append(backends, fmt.Sprint(backend)), append(models, key)
			}
		}
	}
	switch name {
	case "static_aliases":
		im.set(name, strings.Join(aliases, ","))
	case "static_models":
		im.set("static-backends", strings.Join(backends, ","))
		im.set(name, strings.Join(models, ","))
	default:
		im.set(name, "a mapping")
	}
}

func (im *stackImport) list(name string) []string {
	var all []string
	for word := range strings.SplitSeq(im.arguments[name], ",") {
		if word = strings.TrimSpace(word); word != "" {
			all = append(all, word)
		}
	}
	return all
}

func (im *stackImport) convert() {
	if _, ok := im.arguments["service-discovery"]; ok {
		im.problems.oneOf("--service-discovery", im.arguments["service-discovery"], []string{"static", "k8s"})
	}
	im.engines()
	for _, alias := range im.list("static-aliases") {
		name, model, ok := strings.Cut(alias, ":")
		if !ok || name == "" || model == "" {
			im.problems.add("--static-aliases", alias, "must be ALIAS:MODEL")
			continue
		}
		im.target(name, model, 1)
	}
	im.routing()
}

// engines converts the static backends, each with its model.
func (im *stackImport) engines() {
	backends, models, labels := im.list("static-backends"), im.list("static-models"), im.list("static-model-labels")
	if len(models) > 0 && len(models) != len(backends) {
		im.problems.add("--static-models", im.arguments["static-models"], "must have a model for each of the %d static backends", len(backends))
		return
	}
	if len(labels) > 0 && len(labels) != len(backends) {
		im.problems.add("--static-model-labels", im.arguments["static-model-labels"], "must have a label for each of the %d static backends", len(backends))
		return
	}
	for i, backend := range backends {
		model := ""
		if len(models) > 0 {
			model = models[i]
		}
		engine := im.serve(fmt.Sprintf("--static-backends[%d]", i), backend, model)
		if engine == nil || len(labels) == 0 {
			continue
		}
		switch {
		case slices.Contains(im.list("prefill-model-labels"), labels[i]):
			engine.Role = "prefill"
		case slices.Contains(im.list("decode-model-labels"), labels[i]):
			engine.Role = "decode"
		}
	}
}

func (im *stackImport) routing() {
	logic, ok := im.arguments["routing-logic"]
	if !ok {
		return
	}
	scheduling := &im.Document.Scheduling
	switch logic {
	case "roundrobin":
		scheduling.Affinity = "off"
	case "session":
		key := im.arguments["session-key"]
		if key == "" {
			im.problems.add("--session-key", key, "must be the header that names a session")
			return
		}
		scheduling.Affinity, scheduling.AffinitySession = "session", SourceHeader+strings.ToLower(key)
	case "prefixaware", "kvaware": // the profile's
	case "disaggregated_prefill":
		im.note("--routing-logic: prefill and decode apart need llm-d's sidecar beside each decode engine (docs/disaggregated.md)")
	case "priority":
		im.note("--routing-logic: ignored: Weir's tiers are priorities of requests, not of engines")
	default:
		im.problems.oneOf("--routing-logic", logic, []string{"roundrobin", "session", "kvaware", "prefixaware", "disaggregated_prefill", "priority"})
	}
}

// tell notes the arguments that nothing was made of.
func (im *stackImport) tell() {
	var known, nothing []string
	for name := range stackInstead {
		known = append(known, name)
	}
	known = append(known, stackConverted...)
	for _, name := range im.names {
		instead, ok := stackInstead[name]
		switch {
		case slices.Contains(stackConverted, name):
		case !ok:
			slices.Sort(known)
			im.note("--%s: ignored: no argument of vLLM's router has this name%s", name, spelling.Suggest(name, known))
		case instead == "":
			nothing = append(nothing, "--"+name)
		default:
			im.note("--%s: ignored: %s", name, instead)
		}
	}
	if len(nothing) > 0 {
		im.note("ignored, since nothing here stands for it: %s", strings.Join(nothing, ", "))
	}
	if im.arguments["service-discovery"] == "k8s" {
		im.note("--service-discovery: engines are the pods of an InferencePool, or of --endpoint-selector (docs/pods.md)")
	}
}
