package app

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
)

// foreignFlags are the flags of llm-d's and GIE's endpoint pickers that mean nothing here, with the reason. They are
// accepted with any value, so that their charts' arguments can stay, and named in one warning.
var foreignFlags = []struct {
	name, why string
	boolean   bool
}{
	{"allow-experimental-plugins", "there are no plugins", true},
	{"cache-info-metric", notScraped, false},
	{"disable-endpoint-subset-filter", "the subset hint is left out with scheduling.filters in the configuration", true},
	{"emit-endpoint-scores", "/debug/recording and weir explain say why an endpoint was picked", true},
	{"enable-grpc-stream-metrics", "weir_extproc_streams is always there", true},
	{"enable-multi-engine", notScraped, true},
	{"engine-label-key", notScraped, false},
	{"grpc-max-send-msg-size", "what Weir sends has no limit", false},
	{"health-checking", "the ext_proc port always answers health checks", true},
	{"kv-cache-usage-percentage-metric", notScraped, false},
	{"log-level", "the log's verbosity is --v", false},
	{"lora-info-metric", notScraped, false},
	{"metrics-staleness-threshold", notScraped, false},
	{"model-server-metrics-https-insecure-skip-verify", notScraped, true},
	{"model-server-metrics-path", notScraped, false},
	{"model-server-metrics-port", notScraped, false},
	{"model-server-metrics-scheme", notScraped, false},
	{"refresh-metrics-interval", notScraped, false},
	{"refresh-prometheus-metrics-interval", "metrics are always up to date", false},
	{"total-queued-requests-metric", notScraped, false},
	{"total-running-requests-metric", notScraped, false},
	{"tracing", "there are no traces yet", true},
	{"zap-devel", "the log's encoding is --zap-encoder", true},
	{"zap-log-level", "the log's verbosity is --v", false},
	{"zap-stacktrace-level", "errors that are defects have their stack", false},
	{"zap-time-encoding", "times in the log are RFC 3339", false},
}

const notScraped = "Weir counts what is at each model server itself"

// refusedFlags are flags of theirs that protect something, and that this build has no equal for: who gave one must
// know that it does not hold.
var refusedFlags = map[string]string{
	"metrics-client-ca-file": "the metrics port asks for no client certificates; --metrics-endpoint-auth asks for a token",
}

// foreign defines them, outside the groups of --help.
func (f *flags) foreign(s *pflag.FlagSet) {
	for _, flag := range foreignFlags {
		s.String(flag.name, "", flag.why)
		if flag.boolean {
			s.Lookup(flag.name).NoOptDefVal = "true"
		}
	}
	for name, why := range refusedFlags {
		s.String(name, "", why)
	}
	s.StringVar(&f.MetricsCertPath, "metrics-cert-dir", "", "llm-d's name of --metrics-cert-path, with --metrics-secure-serving")
}

// helpForeign prints their names.
func (f *flags) helpForeign(w io.Writer) {
	_, _ = fmt.Fprint(w, "\nllm-d's name of --metrics-cert-path, with --metrics-secure-serving:\n  --metrics-cert-dir\n")
	_, _ = fmt.Fprint(w, "\nAccepted for the charts of llm-d and GIE, without a meaning here:\n")
	for _, flag := range foreignFlags {
		_, _ = fmt.Fprintf(w, "  --%s: %s\n", flag.name, flag.why)
	}
	_, _ = fmt.Fprint(w, "\nRefused, because of what they protect:\n")
	for name, why := range refusedFlags {
		_, _ = fmt.Fprintf(w, "  --%s: %s\n", name, why)
	}
}

// translateForeign gives the flags of theirs that mean something their meaning.
func (f *flags) translateForeign() {
	if f.set.Changed("metrics-cert-dir") {
		f.MetricsSecureServing = true
	}
}

// refuseForeign returns an error that names every given flag of theirs that is refused.
func (f *flags) refuseForeign() error {
	var problems []error
	for name, why := range refusedFlags {
		if f.set.Changed(name) {
			problems = append(problems, fmt.Errorf("--%s: %s: %s", name, f.set.Lookup(name).Value, why))
		}
	}
	return errors.Join(problems...)
}

// warnForeign logs once which flags of theirs were given.
func (f *flags) warnForeign(log logr.Logger) {
	var given []string
	for _, flag := range foreignFlags {
		// Theirs are on by default, so that charts turn off what is not there.
		if f.set.Changed(flag.name) && !(flag.boolean && f.set.Lookup(flag.name).Value.String() == "false") {
			given = append(given, "--"+flag.name+" ("+flag.why+")")
		}
	}
	if len(given) > 0 {
		slices.Sort(given)
		log.Info(warningPrefix+"these flags are of other endpoint pickers, and mean nothing here", "flags", strings.Join(given, ", "))
	}
}
