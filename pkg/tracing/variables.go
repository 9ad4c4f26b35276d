package tracing

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// serviceName is the attribute with the name of the service.
const serviceName = "service.name"

// The prefixes of the exporter's variables. A variable for traces overrides one for all signals.
const (
	exporterPrefix = "OTEL_EXPORTER_OTLP_"
	tracesPrefix   = "OTEL_EXPORTER_OTLP_TRACES_"
)

// mostTime is the longest time that a variable may state.
const mostTime = time.Hour

// samplers has a function for each value of OTEL_TRACES_SAMPLER.
var samplers = map[string]func(ratio float64) sdktrace.Sampler{
	"always_on":                func(float64) sdktrace.Sampler { return sdktrace.AlwaysSample() },
	"always_off":               func(float64) sdktrace.Sampler { return sdktrace.NeverSample() },
	"traceidratio":             sdktrace.TraceIDRatioBased,
	"parentbased_always_on":    func(float64) sdktrace.Sampler { return sdktrace.ParentBased(sdktrace.AlwaysSample()) },
	"parentbased_always_off":   func(float64) sdktrace.Sampler { return sdktrace.ParentBased(sdktrace.NeverSample()) },
	"parentbased_traceidratio": func(r float64) sdktrace.Sampler { return sdktrace.ParentBased(sdktrace.TraceIDRatioBased(r)) },
}

// Read returns the configuration from OpenTelemetry's variables. lookup returns a variable's value, "" for an unset
// one. Read also reads the certificates that the variables name. The configuration is nil if tracing is off
// (OTEL_SDK_DISABLED, OTEL_TRACES_EXPORTER). The error names each variable with an invalid value, and the value.
func Read(lookup func(name string) string) (*Config, error) {
	v := &variables{lookup: lookup}
	cfg := DefaultConfig()
	off := v.bool("OTEL_SDK_DISABLED")
	if v.oneOf("OTEL_TRACES_EXPORTER", "otlp", "otlp", "none") == "none" {
		off = true
	}
	v.propagators("OTEL_PROPAGATORS")
	v.exporter(&cfg)
	v.sampler(&cfg)
	v.queue(&cfg)
	v.resource(&cfg)
	if err := errors.Join(v.problems...); err != nil {
		return nil, err
	}
	if off {
		return nil, nil
	}
	return &cfg, nil
}

// variables reads variables, and notes the problems.
type variables struct {
	lookup   func(string) string
	problems []error
}

// bad notes a problem of the value of a variable.
func (v *variables) bad(name, value, format string, args ...any) {
	v.problems = append(v.problems, fmt.Errorf("%s: %q: %s", name, value, fmt.Sprintf(format, args...)))
}

// get returns a variable without surrounding space.
func (v *variables) get(name string) string { return strings.TrimSpace(v.lookup(name)) }

// ofExporter returns the name and the value of an exporter's variable: the one for traces, else the one for all
// signals.
func (v *variables) ofExporter(suffix string) (name, value string) {
	if value = v.get(tracesPrefix + suffix); value != "" {
		return tracesPrefix + suffix, value
	}
	return exporterPrefix + suffix, v.get(exporterPrefix + suffix)
}

func (v *variables) bool(name string) bool {
	value := v.get(name)
	switch strings.ToLower(value) {
	case "true":
		return true
	case "", "false":
	default:
		v.bad(name, value, "must be true or false")
	}
	return false
}

// oneOf returns a variable with one of the known values.
func (v *variables) oneOf(name, otherwise string, known ...string) string {
	value := cmp.Or(v.get(name), otherwise)
	if !slices.Contains(known, value) {
		v.bad(name, value, "must be one of %s", strings.Join(known, ", "))
	}
	return value
}

// int returns a number variable, 1 to most.
func (v *variables) int(name, value string, otherwise, most int) int {
	if value == "" {
		return otherwise
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 || n > most {
		v.bad(name, value, "must be a number from 1 to %d", most)
		return otherwise
	}
	return n
}

// millis returns a time variable, in milliseconds.
func (v *variables) millis(name, value string, otherwise time.Duration) time.Duration {
	return time.Duration(v.int(name, value, int(otherwise.Milliseconds()), int(mostTime.Milliseconds()))) * time.Millisecond
}

// propagators checks that Weir supports all requested propagators.
func (v *variables) propagators(name string) {
	value := v.get(name)
	for part := range strings.SplitSeq(value, ",") {
		if part = strings.TrimSpace(part); part != "" && part != "tracecontext" && part != "baggage" {
			v.bad(name, value, "%s is not read, only tracecontext is", part)
		}
	}
}

// sampler reads the sampler.
func (v *variables) sampler(cfg *Config) {
	const name, argument = "OTEL_TRACES_SAMPLER", "OTEL_TRACES_SAMPLER_ARG"
	kind := cmp.Or(v.get(name), "parentbased_always_on")
	sampler, known := samplers[kind]
	if !known {
		v.bad(name, kind, "must be one of always_on, always_off, traceidratio, and these with parentbased_ before them")
		return
	}
	ratio := 1.0
	if value := v.get(argument); value != "" && strings.HasSuffix(kind, "traceidratio") {
		var err error
		if ratio, err = strconv.ParseFloat(value, 64); err != nil || !(ratio >= 0 && ratio <= 1) { // NaN, too
			v.bad(argument, value, "must be a number from 0 to 1")
			return
		}
	}
	cfg.Sampler = sampler(ratio)
}

// queue reads the bounds of the queue.
func (v *variables) queue(cfg *Config) {
	const size, batch, delay, timeout = "OTEL_BSP_MAX_QUEUE_SIZE", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "OTEL_BSP_SCHEDULE_DELAY", "OTEL_BSP_EXPORT_TIMEOUT"
	cfg.QueueSize = v.int(size, v.get(size), cfg.QueueSize, MostQueued)
	cfg.BatchSize = v.int(batch, v.get(batch), min(cfg.BatchSize, cfg.QueueSize), cfg.QueueSize)
	cfg.Delay = v.millis(delay, v.get(delay), cfg.Delay)
	cfg.ExportTimeout = v.millis(timeout, v.get(timeout), cfg.ExportTimeout)
}

// resource reads the attributes of the process.
func (v *variables) resource(cfg *Config) {
	const name = "OTEL_RESOURCE_ATTRIBUTES"
	pairs, err := pairsOf(v.get(name))
	if err != nil {
		v.bad(name, v.get(name), "%s", err)
		return
	}
	for _, p := range pairs {
		cfg.Attributes = append(cfg.Attributes, attribute.String(p.key, text(p.value))) // the last of equal keys counts
	}
	if service := v.get("OTEL_SERVICE_NAME"); service != "" {
		cfg.Attributes = append(cfg.Attributes, attribute.String(serviceName, text(service)))
	}
}

// pair is a key with its value.
type pair struct{ key, value string }

// pairsOf reads a list like k1=v1,k2=v2; values may be percent-encoded. The error names a pair only by its number.
func pairsOf(list string) (pairs []pair, err error) {
	number := 0
	for item := range strings.SplitSeq(list, ",") {
		number++
		if strings.TrimSpace(item) == "" {
			continue
		}
		key, value, ok := strings.Cut(item, "=")
		key = strings.TrimSpace(key)
		decoded, problem := url.PathUnescape(strings.TrimSpace(value))
		if !ok || key == "" || problem != nil {
			return nil, fmt.Errorf("must be a list like key=value,key=value, and part %d is not", number)
		}
		pairs = append(pairs, pair{key, decoded})
	}
	return pairs, nil
}

// endpoint reads the URL of the collector. For gRPC it may be an address without a scheme, used with TLS unless a
// variable turns TLS off.
func (v *variables) endpoint(cfg *Config) {
	insecureName, insecure := v.ofExporter("INSECURE")
	plain := insecure != "" && v.bool(insecureName)
	name, value := v.ofExporter("ENDPOINT")
	switch {
	case value == "" && cfg.Protocol == HTTP:
		cfg.Endpoint = "http://localhost:4318/v1/traces"
		return
	case value == "":
		return
	}
	stated := value
	if !strings.Contains(value, "://") && cfg.Protocol == GRPC {
		value = "https://" + value
		if plain {
			value = "http://" + stated
		}
	}
	u, err := url.Parse(value)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || !validPort(u.Port()) {
		if i := strings.LastIndexByte(stated, '@'); i >= 0 {
			stated = "…" + stated[i:] // without its password
		}
		v.bad(name, stated, "must be a URL such as http://collector:4317")
		return
	}
	if cfg.Protocol == HTTP {
		if name == exporterPrefix+"ENDPOINT" {
			u = u.JoinPath("v1", "traces")
		} else if u.Path == "" {
			u.Path = "/"
		}
	} else if u.Port() == "" {
		u.Host = net.JoinHostPort(u.Hostname(), "4317")
	}
	cfg.Endpoint = u.String()
}

func validPort(port string) bool {
	if port == "" {
		return true
	}
	n, err := strconv.Atoi(port)
	return err == nil && n > 0 && n <= 65535
}
