package config

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// llmdPlugins has Weir's place of each type of plugin of llm-d and GIE that is not converted.
var llmdPlugins = map[string]string{
	"queue-scorer":                 "scheduling.policy: cost counts what Weir has sent to each engine, and what others have",
	"running-requests-size-scorer": "scheduling.policy: cost counts what Weir has sent to each engine, and what others have",
	"active-request-scorer":        "scheduling.policy: cost counts what Weir has sent to each engine, and what others have",
	"load-aware-scorer":            "scheduling.policy: cost counts what Weir has sent to each engine, and what others have",
	"token-load-scorer":            "scheduling.policy: cost counts what Weir has sent to each engine, and what others have",
	"kv-cache-utilization-scorer":  "slotsPerBackend: auto follows what each engine can hold",
	"lora-affinity-scorer":         "loading an adapter costs as much as 4,000 tokens (docs/routing.md#lora-adapters)",
	"no-hit-lru-scorer":            "cold prompts go by a hash of their beginning among engines that cost about the same",
	"max-score-picker":             "scheduling.tieBreak: rotate",
	"random-picker":                "scheduling.policy: none with tieBreak: random",
	"weighted-random-picker":       "scheduling.tieBreak: random",
	"single-profile-handler":       "there is one profile",
	"metrics-data-source":          "--scrape-path; the flags --model-server-metrics-… have their meaning",
	"core-metrics-extractor":       "--scrape-path; engines are recognised by their metrics",
	"passthrough-parser":           "a format that is not known is passed on, and queued all the same",
	"openai-parser":                "the format is known by the path and the body",
	"utilization-detector":         "slotsPerBackend: auto follows what each engine can hold",
	"round-robin-fairness-policy":  "flows share by weight, in tokens (docs/tokens.md)",
	"fcfs-ordering-policy":         "flows.order: fcfs is the default",
}

// llmdInstead has Weir's place of the other keys of their configuration.
var llmdInstead = map[string]string{
	"featureGates.":                      "the queue is on unless requestQueueController.enabled is false",
	"flowControl.noEndpointRequestTTL":   "fairRequestQueue.queueTTL is for both; holdWhenEmpty: false rejects at once while no engine is ready",
	"flowControl.priorityBands.maxBytes": "limits.maxBodyBytesTotal is for all tiers together",
	"flowControl.defaultPriorityBand.":   "a priority between two tiers has the lower one's",
	"dataLayer.":                         "--scrape-path; the flags --model-server-metrics-… have their meaning",
	"data.":                              "--scrape-path; the flags --model-server-metrics-… have their meaning",
	"requestHandler.":                    "the format is known by the path and the body",
	"parser.":                            "the format is known by the path and the body",
}

// llmdTops are the keys that only values of their charts begin with.
var llmdTops = []string{"router", "inferenceExtension", "inferencePool"}

// ImportLLMD converts a file of llm-d's router or of GIE's endpoint picker: an EndpointPickerConfig to a document over the
// recommended profile, or the values of their charts to values of Weir's, with such a document in them. An impossible value
// of something that is converted is an error with its path; the error is Problems and lists all of them.
func ImportLLMD(text []byte) (Imported, error) {
	im := llmdImport{tree: newTree()}
	var err error
	if im.Document, err = Profile(ProfileRecommended); err != nil {
		return Imported{}, err
	}
	root, problems := parseYAML(text)
	im.problems = problems
	var keys []string
	if root != nil {
		keys = keysOf(root)
	}
	switch {
	case len(problems) > 0:
	case slices.Contains(keys, "apiVersion") || slices.Contains(keys, "plugins"):
		im.config("", root)
	case slices.ContainsFunc(keys, func(key string) bool { return slices.Contains(llmdTops, key) }):
		im.values(root)
	default:
		im.problems = Problems{{Message: "must be an EndpointPickerConfig, or the values of a chart of llm-d's router or GIE's"}}
	}
	if err := im.found(); err != nil {
		return Imported{}, err
	}
	if err := im.Document.Validate(); err != nil {
		return Imported{}, err
	}
	return im.Imported, nil
}

// llmdImport is the state of an import.
type llmdImport struct {
	Imported
	tree
	plugins map[string]llmdPlugin // by name
	order   []string              // their names, in the order of the file
	used    map[string]bool       // those that something refers to
	scorers map[string]bool       // types of those in profiles
	bands   []llmdBand
}

// llmdPlugin is an entry of plugins.
type llmdPlugin struct {
	kind       string
	path       string
	parameters *yaml.Node
}

// llmdBand is an entry of flowControl.priorityBands.
type llmdBand struct {
	priority           int64
	requests           *int64
	fairness, ordering string // types of plugins; "" if it names none
}

// config converts an EndpointPickerConfig; above is its path.
func (im *llmdImport) config(above string, root *yaml.Node) {
	im.plugins, im.used, im.scorers = map[string]llmdPlugin{}, map[string]bool{}, map[string]bool{}
	sections := map[string]*yaml.Node{}
	im.pairs(above, root, func(key, path string, value *yaml.Node) {
		switch key {
		case "apiVersion":
			if version := im.text(path, value); !isForeign(version) {
				im.problems.add(path, version, "must be a version of one of the groups %s", strings.Join(foreignGroups, ", "))
			}
		case "kind": // the decoder of both knows only this one
		case "plugins", "schedulingProfiles", "flowControl", "saturationDetector":
			sections[key] = value
		default:
			im.ignore(path, value)
		}
	})
	section := func(key string, f func(path string, node *yaml.Node)) {
		if node := sections[key]; node != nil {
			f(join(above, key), node)
		}
	}
	section("plugins", func(path string, node *yaml.Node) { im.items(path, node, im.plugin) })
	section("schedulingProfiles", im.profiles)
	section("saturationDetector", im.detector)
	section("flowControl", im.flowControl)
	im.affinity()
	im.tiers()
	im.tellPlugins()
	for i := range im.ignored {
		im.ignored[i] = strings.TrimPrefix(im.ignored[i], above+".")
	}
	im.Notes = append(im.Notes, im.instead(llmdInstead)...)
	im.ignored = nil
}

func (im *llmdImport) plugin(path string, node *yaml.Node) {
	p, name := llmdPlugin{path: path}, ""
	im.pairs(path, node, func(key, path string, value *yaml.Node) {
		switch key {
		case "type":
			p.kind = im.text(path, value)
		case "name":
			name = im.text(path, value)
		case "parameters":
			p.parameters = value
		default:
			im.ignore(path, value)
		}
	})
	if p.kind == "" {
		im.problems.add(join(path, "type"), p.kind, "must be the type of a plugin")
		return
	}
	if name == "" {
		name = p.kind
	}
	if _, twice := im.plugins[name]; !twice {
		im.order = append(im.order, name)
	}
	im.plugins[name] = p
}

// kind returns the type of the plugin that a node names; "" with a problem if there is none.
func (im *llmdImport) kind(path string, node *yaml.Node) string {
	name := im.text(path, node)
	p, ok := im.plugins[name]
	if !ok {
		im.problems.add(path, name, "must be the name of one of the plugins")
	}
	im.used[name] = true
	return p.kind
}

func (im *llmdImport) profiles(path string, node *yaml.Node) {
	count := 0
	im.items(path, node, func(path string, node *yaml.Node) {
		count++
		im.pairs(path, node, func(key, path string, value *yaml.Node) {
			switch key {
			case "name":
			case "plugins":
				im.items(path, value, func(path string, node *yaml.Node) {
					im.pairs(path, node, func(key, path string, value *yaml.Node) {
						switch key {
						case "pluginRef":
							im.scorers[im.kind(path, value)] = true
						case "weight": // there is one comparison, in tokens
						default:
							im.ignore(path, value)
						}
					})
				})
			default:
				im.ignore(path, value)
			}
		})
	})
	if count > 1 {
		im.note("schedulingProfiles: there is one comparison for all requests; prefill and decode go apart by the engines' roles (docs/disaggregated.md)")
	}
}

// affinity goes by the scorers of the profiles.
func (im *llmdImport) affinity() {
	prefix := slices.ContainsFunc([]string{"prefix-cache-scorer", "precise-prefix-cache-scorer", "approximate-prefix-cache-scorer"},
		func(kind string) bool { return im.scorers[kind] })
	switch {
	case prefix || len(im.scorers) == 0: // the profile's
	case im.scorers["session-affinity-scorer"]:
		im.Document.Scheduling.Affinity, im.Document.Scheduling.AffinitySession = "session", SourceHeader+"x-session-token"
		im.note("scheduling.affinitySession: llm-d's sessions are a token that its answers bring; Weir's are a header of the client's, " +
			"a cookie or a key of the body: choose one")
	default:
		im.Document.Scheduling.Affinity = "off"
	}
}

// detector converts a saturation detector, in either place of the file.
func (im *llmdImport) detector(path string, node *yaml.Node) {
	im.pairs(path, node, func(key, path string, value *yaml.Node) {
		if key != "pluginRef" {
			im.ignore(path, value)
			return
		}
		name := im.text(path, value)
		if im.kind(path, value) != "concurrency-detector" || im.plugins[name].parameters == nil {
			return
		}
		p := im.plugins[name]
		im.pairs(join(p.path, "parameters"), p.parameters, func(key, path string, value *yaml.Node) {
			if key != "maxConcurrency" {
				im.ignore(path, value)
				return
			}
			slots := Slots(im.whole(path, value, 1, math.MaxInt32))
			im.Document.RequestQueueController.SlotsPerBackend = &slots
		})
	})
}

func (im *llmdImport) flowControl(path string, node *yaml.Node) {
	im.pairs(path, node, func(key, path string, value *yaml.Node) {
		switch key {
		case "maxRequests":
			im.Document.FairRequestQueue.TotalCapacity = im.whole(path, value, 1, math.MaxInt32)
			im.Document.FairRequestQueue.FlowCapacity = im.Document.FairRequestQueue.TotalCapacity
		case "maxBytes":
			im.Document.Limits.MaxBodyBytesTotal = im.bytes(path, value)
		case "defaultRequestTTL":
			text := im.text(path, value)
			ttl, err := time.ParseDuration(text)
			if err != nil || ttl <= 0 || ttl > time.Hour {
				im.problems.add(path, text, "must be a duration above 0s and at most 1h")
				return
			}
			im.Document.FairRequestQueue.QueueTTL = Duration(ttl)
		case "saturationDetector":
			im.detector(path, value)
		case "priorityBands":
			im.items(path, value, im.band)
		default:
			im.ignore(path, value)
		}
	})
}

// bytes returns a number of bytes, plain or as a quantity of Kubernetes (512Mi).
func (im *llmdImport) bytes(path string, node *yaml.Node) int64 {
	text := im.text(path, node)
	number, unit := text, int64(1)
	for i, suffix := range []string{"Ki", "Mi", "Gi", "Ti"} {
		if n, ok := strings.CutSuffix(text, suffix); ok {
			number, unit = n, 1<<(10*(i+1))
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 1 || n > math.MaxInt64/unit {
		im.problems.add(path, text, "must be a number of bytes, such as 1073741824 or 1Gi")
		return 0
	}
	return n * unit
}

func (im *llmdImport) band(path string, node *yaml.Node) {
	var b llmdBand
	im.pairs(path, node, func(key, path string, value *yaml.Node) {
		switch key {
		case "priority":
			b.priority = im.whole(path, value, math.MinInt32, math.MaxInt32)
		case "maxRequests":
			n := im.whole(path, value, 1, math.MaxInt32)
			b.requests = &n
		case "fairnessPolicyRef":
			b.fairness = im.kind(path, value)
		case "orderingPolicyRef":
			b.ordering = im.kind(path, value)
		default:
			im.ignore(path, value)
		}
	})
	if slices.ContainsFunc(im.bands, func(o llmdBand) bool { return o.priority == b.priority }) {
		im.problems.add(join(path, "priority"), b.priority, "must be a priority of its own")
	}
	im.bands = append(im.bands, b)
}

// tiers makes a tier of each band. The lowest one has no least priority, so that none is without a tier.
func (im *llmdImport) tiers() {
	if len(im.bands) == 0 {
		return
	}
	slices.SortFunc(im.bands, func(a, b llmdBand) int { return int(b.priority - a.priority) })
	d := &im.Document
	if len(im.bands) > 1 || im.bands[0].requests != nil {
		d.Tiers, d.ReplaceTiers = nil, true
		for i, b := range im.bands {
			name := fmt.Sprint("priority-", b.priority)
			if b.priority < 0 {
				name = fmt.Sprint("priority-minus-", -b.priority)
			}
			tier := Tier{Name: name, Weight: One, QueueSize: b.requests}
			if i < len(im.bands)-1 {
				tier.MinPriority = &b.priority
			}
			d.Tiers = append(d.Tiers, tier)
		}
	}
	first := im.bands[0]
	if slices.ContainsFunc(im.bands, func(b llmdBand) bool { return b.fairness != first.fairness || b.ordering != first.ordering }) {
		im.note("flowControl.priorityBands: tiers have one discipline and order; those of priority %d are taken", first.priority)
	}
	if first.fairness == "global-strict-fairness-policy" {
		d.Flows.Discipline = "none"
	}
	switch first.ordering {
	case "edf-ordering-policy":
		d.Flows.Order = "edf"
	case "slo-deadline-ordering-policy":
		d.Flows.Order = "edf"
		d.RequestQueueController.DeadlineHeaders = []string{"x-llm-d-slo-ttft-ms"}
		im.note("requestQueueController.deadlineHeaders: the deadline also ends the wait, and a request without the header goes by the end of its TTL")
	}
}

// llmdConverted are the types of plugins that are converted.
var llmdConverted = []string{
	"prefix-cache-scorer", "precise-prefix-cache-scorer", "approximate-prefix-cache-scorer", "session-affinity-scorer",
	"concurrency-detector", "global-strict-fairness-policy", "edf-ordering-policy", "slo-deadline-ordering-policy",
}

// tellPlugins names the plugins of which nothing was made, with what Weir does instead.
func (im *llmdImport) tellPlugins() {
	told := map[string]bool{}
	for _, name := range im.order {
		p := im.plugins[name]
		switch instead := llmdPlugins[p.kind]; {
		case told[p.kind]:
		case slices.Contains(llmdConverted, p.kind):
			if p.parameters != nil && p.kind != "concurrency-detector" {
				im.note("plugin %s: its parameters are ignored (docs/routing.md#from-llm-ds-prefix-scorer)", name)
			}
		case instead == "":
			im.note("plugin %s: ignored: nothing here stands for it", p.kind)
		default:
			im.note("plugin %s: %s", p.kind, instead)
		}
		told[p.kind] = true
	}
}
