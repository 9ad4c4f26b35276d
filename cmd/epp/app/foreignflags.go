package app

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"

	"github.com/weir-epp/weir/pkg/datastore/scrape"
)

// foreignFlags are the flags of llm-d's and GIE's endpoint pickers without a meaning here, with the reason. They are
// accepted with any value, so that these pickers' charts' arguments can stay, and named in one warning.
var foreignFlags = []struct {
	name, why string
	boolean   bool
}{
	{"allow-experimental-plugins", "there are no plugins", true},
	{"disable-endpoint-subset-filter", "scheduling.filters in the configuration can omit subset", true},
	{"emit-endpoint-scores", "/debug/recording and weir explain show why an endpoint was picked", true},
	{"enable-grpc-stream-metrics", "weir_extproc_streams always exists", true},
	{"enable-multi-engine", recognised, true},
	{"engine-label-key", recognised, false},
	{"grpc-max-send-msg-size", "Weir's messages have no limit", false},
	{"health-checking", "the ext_proc port always answers health checks", true},
	{"log-level", "the log's verbosity is --v", false},
	{"metrics-staleness-threshold", "readings of engines expire over 3 to 10 s", false},
	{"refresh-prometheus-metrics-interval", "metrics are always up to date", false},
	{"zap-devel", "the log's encoding is --zap-encoder", true},
	{"zap-log-level", "the log's verbosity is --v", false},
	{"zap-stacktrace-level", "errors that are defects include the stack", false},
	{"zap-time-encoding", "times in the log are RFC 3339", false},
}

const recognised = "each engine is recognised by its metrics"

// scrapeFlags are these pickers' flags about the metrics of model servers, with the same meaning here.
var scrapeFlags = []struct {
	name, help string
	set        func(c *scrape.Config, value string) error
	boolean    bool
}{
	{"cache-info-metric", "the metric with the labels block_size and num_gpu_blocks", textOf(func(c *scrape.Config) *string { return &c.Names.CacheInfo }), false},
	{"kv-cache-usage-percentage-metric", "the used share of the KV cache", textOf(func(c *scrape.Config) *string { return &c.Names.CacheUsed }), false},
	{"lora-info-metric", "the metric with the labels running_lora_adapters, waiting_lora_adapters and max_lora, in place of vllm:lora_requests_info", textOf(func(c *scrape.Config) *string { return &c.Names.Adapters }), false},
	{"model-server-metrics-https-insecure-skip-verify", "true, the default: accept any certificate", func(c *scrape.Config, v string) (err error) {
		c.Insecure, err = strconv.ParseBool(v)
		return err
	}, true},
	{"model-server-metrics-path", "--scrape-path", textOf(func(c *scrape.Config) *string { return &c.Path }), false},
	{"model-server-metrics-port", "the port of the metrics, if it differs from the endpoint's", func(c *scrape.Config, v string) (err error) {
		c.Port, err = strconv.Atoi(v)
		return err
	}, false},
	{"model-server-metrics-scheme", "http or https", textOf(func(c *scrape.Config) *string { return &c.Scheme }), false},
	{"refresh-metrics-interval", "the time between two scrapes, at least 1s", func(c *scrape.Config, v string) error {
		d, err := time.ParseDuration(v)
		c.Interval = max(d, time.Second)
		return err
	}, false},
	{"total-queued-requests-metric", "the requests that wait in the engine", textOf(func(c *scrape.Config) *string { return &c.Names.Waiting }), false},
	{"total-running-requests-metric", "the requests that the engine runs", textOf(func(c *scrape.Config) *string { return &c.Names.Running }), false},
}

// textOf returns a function that sets a text. The pickers' charts pass some texts with quotes.
func textOf(field func(*scrape.Config) *string) func(*scrape.Config, string) error {
	return func(c *scrape.Config, value string) error {
		*field(c) = value
		return nil
	}
}

// refusedFlags are the pickers' protective flags without an equivalent in this build: an operator who sets one must
// learn that it has no effect.
var refusedFlags = map[string]string{
	"metrics-client-ca-file": "the metrics port asks for no client certificates; --metrics-endpoint-auth asks for a token",
}

// foreign defines the foreign flags, outside the groups of --help.
func (f *flags) foreign(s *pflag.FlagSet) {
	for _, flag := range foreignFlags {
		s.String(flag.name, "", flag.why)
		if flag.boolean {
			s.Lookup(flag.name).NoOptDefVal = "true"
		}
	}
	for _, flag := range scrapeFlags {
		s.String(flag.name, "", flag.help)
		if flag.boolean {
			s.Lookup(flag.name).NoOptDefVal = "true"
		}
	}
	for name, why := range refusedFlags {
		s.String(name, "", why)
	}
	s.StringVar(&f.MetricsCertPath, "metrics-cert-dir", "", "llm-d's name of --metrics-cert-path, with --metrics-secure-serving")
}

// helpForeign prints the names of the foreign flags.
func (f *flags) helpForeign(w io.Writer) {
	_, _ = fmt.Fprint(w, "\nllm-d's name of --metrics-cert-path, with --metrics-secure-serving:\n  --metrics-cert-dir\n")
	_, _ = fmt.Fprint(w, "\nOf llm-d and GIE, about the metrics of model servers:\n")
	for _, flag := range scrapeFlags {
		_, _ = fmt.Fprintf(w, "  --%s: %s\n", flag.name, flag.help)
	}
	_, _ = fmt.Fprint(w, "\nAccepted for the charts of llm-d and GIE, without effect:\n")
	for _, flag := range foreignFlags {
		_, _ = fmt.Fprintf(w, "  --%s: %s\n", flag.name, flag.why)
	}
	_, _ = fmt.Fprint(w, "\nRefused, because Weir lacks the feature:\n")
	for name, why := range refusedFlags {
		_, _ = fmt.Fprintf(w, "  --%s: %s\n", name, why)
	}
}

// translateForeign applies the given scrapeFlags. The error names every one with an invalid value.
func (f *flags) translateForeign() error {
	if f.set.Changed("metrics-cert-dir") {
		f.MetricsSecureServing = true
	}
	if f.set.Changed("scrape-path") {
		f.Scrape.Others = nil
	}
	var problems []error
	for _, flag := range scrapeFlags {
		if !f.set.Changed(flag.name) || flag.name == "model-server-metrics-path" && f.set.Changed("scrape-path") {
			continue
		}
		value := strings.Trim(f.set.Lookup(flag.name).Value.String(), `"`)
		if err := flag.set(&f.Scrape, value); err != nil {
			problems = append(problems, fmt.Errorf("--%s: %q: must be %s", flag.name, value, flag.help))
		}
	}
	return errors.Join(problems...)
}

// refuseForeign returns an error that names every given refused flag.
func (f *flags) refuseForeign() error {
	var problems []error
	for name, why := range refusedFlags {
		if f.set.Changed(name) {
			problems = append(problems, fmt.Errorf("--%s: %s: %s", name, f.set.Lookup(name).Value, why))
		}
	}
	return errors.Join(problems...)
}

// warnForeign logs the given foreign flags, once.
func (f *flags) warnForeign(log logr.Logger) {
	var given []string
	for _, flag := range foreignFlags {
		// The pickers' flags are on by default, so charts turn off features that do not exist here.
		if f.set.Changed(flag.name) && !(flag.boolean && f.set.Lookup(flag.name).Value.String() == "false") {
			given = append(given, "--"+flag.name+" ("+flag.why+")")
		}
	}
	if len(given) > 0 {
		slices.Sort(given)
		log.Info(warningPrefix+"these flags of other endpoint pickers have no effect", "flags", strings.Join(given, ", "))
	}
}
