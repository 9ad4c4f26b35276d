package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/weir-epp/weir/internal/arguments"
	"github.com/weir-epp/weir/internal/loadgen"
	"github.com/weir-epp/weir/internal/printable"
	"github.com/weir-epp/weir/internal/simulate"
)

const loadAbout = `Usage:
  weir load TRACE --to URL [flags]

weir load sends the requests of a trace to an OpenAI API, each at its time. Prompts are made from the hashes of the trace: equal
hashes give equal text. TRACE is a trace for weir simulate (.csv, or JSON lines), or a file of clients (.yaml). The result has
the waits, the refusals, and the cached tokens reported in the usage. Load is bounded in requests, time and connections.
`

// loadOptions are the flags of `weir load`.
type loadOptions struct {
	file        string
	to          string
	api         string
	model       string
	headers     []string
	flowHeader  string
	tierHeader  string
	flow        string
	speed       float64
	repeat      int
	requests    int
	duration    time.Duration
	timeout     time.Duration
	connections int
	block       int
	bytes       int
	ignoreEOS   bool
	seed        uint64
	json        bool

	header http.Header // of all requests, from headers
}

// runLoad is `weir load`.
func runLoad(args []string, stdout, stderr io.Writer) int {
	var o loadOptions
	set := flagSet("weir load")
	o.flags(set)
	help := fmt.Sprintf("%s\nFlags:\n%s", loadAbout, set.FlagUsagesWrapped(120))
	if code, ok := readArguments(set, help, args, o.check, stdout, stderr); !ok {
		return code
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := o.run(ctx, stdout, stderr); err != nil {
		_, _ = fmt.Fprintf(stderr, "weir load: %v\n", err)
		return 1
	}
	return 0
}

func (o *loadOptions) flags(set *pflag.FlagSet) {
	set.StringVar(&o.to, "to", "", "`URL` of the API, without /v1: http://127.0.0.1:8000")
	set.StringVar(&o.api, "api", "chat", "chat (/v1/chat/completions) or completions (/v1/completions)")
	set.StringVar(&o.model, "model", "simulated", "name of the model")
	set.StringArrayVar(&o.headers, "header", nil, "`NAME: VALUE` of a header of each request; may be repeated")
	set.StringVar(&o.flowHeader, "flow-header", "x-llm-d-inference-fairness-id", "header that names a request's flow; empty: none")
	set.StringVar(&o.tierHeader, "tier-header", "x-llm-d-inference-objective", "header that names a request's tier, if the trace has tiers; empty: none")
	set.StringVar(&o.flow, "flow", "trace", "flow of the requests in a trace without a flow")
	set.Float64Var(&o.speed, "speed", 1, "factor by which requests are sent faster, 0.001 to 1000")
	set.IntVar(&o.repeat, "repeat", 1, "number of times to play a trace, each time with other prefixes")
	set.IntVar(&o.requests, "requests", 100_000, "largest number of requests, 1 to 1000000")
	set.DurationVar(&o.duration, "duration", 10*time.Minute, "longest time of sending, 1s to 24h")
	set.DurationVar(&o.timeout, "timeout", 10*time.Minute, "longest time of a request, 1s to 24h")
	set.IntVar(&o.connections, "connections", 1024, "largest number of requests in flight, 1 to 65536; further requests are not sent, but counted")
	set.IntVar(&o.block, "block-tokens", simulate.DefaultBlock, "tokens of a prompt for each hash of a trace")
	set.IntVar(&o.bytes, "bytes-per-token", simulate.BytesPerToken, "bytes of a prompt for each of its tokens")
	set.BoolVar(&o.ignoreEOS, "ignore-eos", true, "ask for answers of exactly the trace's length, by vLLM's ignore_eos")
	set.Uint64Var(&o.seed, "seed", 1, "seed of texts, and of the clients of a .yaml")
	set.BoolVar(&o.json, "json", false, "print the whole result as JSON, instead of a table")
}

// check reports every argument out of its range.
func (o *loadOptions) check(args []string) error {
	var ps arguments.Problems
	if err := checkOne(args, "TRACE"); err != nil {
		ps = append(ps, err)
	} else {
		o.file = args[0]
	}
	if u, err := url.Parse(o.to); o.to == "" {
		ps.Add("to", "missing: must be the URL of an API, such as http://127.0.0.1:8000")
	} else if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || strings.Trim(u.Path, "/") != "" {
		ps.Add("to", "%q: must be http://HOST:PORT or https://HOST:PORT", o.to)
	}
	if o.api != apiChat && o.api != apiCompletions {
		ps.Add("api", "%q: must be chat or completions", o.api)
	}
	o.header = http.Header{}
	for _, header := range o.headers {
		name, value, ok := strings.Cut(header, ":")
		if !ok || strings.TrimSpace(name) == "" {
			ps.Add("header", "%q: must be NAME: VALUE", header)
			continue
		}
		o.header.Add(strings.TrimSpace(name), strings.TrimSpace(value))
	}
	arguments.Within(&ps, "speed", o.speed, 0.001, 1000)
	arguments.Within(&ps, "repeat", o.repeat, 1, 1_000_000)
	arguments.Within(&ps, "requests", o.requests, 1, 1_000_000)
	arguments.Within(&ps, "connections", o.connections, 1, 65_536)
	arguments.Within(&ps, "block-tokens", o.block, 1, 1<<16)
	arguments.Within(&ps, "bytes-per-token", o.bytes, 1, 1000)
	arguments.Within(&ps, "duration", o.duration, time.Second, 24*time.Hour)
	arguments.Within(&ps, "timeout", o.timeout, time.Second, 24*time.Hour)
	return ps.Err()
}

// run sends the load and prints the result.
func (o *loadOptions) run(ctx context.Context, stdout, stderr io.Writer) error {
	requests, err := o.read()
	if err != nil {
		return err
	}
	client, err := loadgen.NewClient(loadgen.ClientConfig{BaseURL: strings.TrimRight(o.to, "/"), Anywhere: true})
	if err != nil {
		return err
	}
	defer client.Close()
	bar := newProgress(stderr, 1)
	var show loadgen.Progress
	if bar.bar != nil {
		show = bar.begin("sending")
	}
	report, err := loadgen.Run(ctx, client, o.plan(requests), show)
	bar.end()
	if report == nil {
		return err
	}
	figures := loadFigures(requests, report)
	figures.Left = len(requests) - len(report.Tracks[0].Results)
	if o.json {
		err = printable.WriteJSON(stdout, figures)
	} else {
		err = figures.writeTable(stdout)
	}
	if err == nil && figures.All.Answered == 0 {
		err = fmt.Errorf("%s answered none of %d requests", o.to, figures.All.Requests)
		if failed := report.Tracks[0].Results; len(failed) > 0 && failed[0].Err != nil {
			err = fmt.Errorf("%w; the first: %w", err, failed[0].Err)
		}
	}
	return err
}

// read reads all requests, so that nothing of a trace with a wrong line is sent.
func (o *loadOptions) read() ([]simulate.Request, error) {
	source, done, err := o.source()
	if err != nil {
		return nil, err
	}
	var requests []simulate.Request
	for len(requests) < o.requests {
		r, err := source.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, errors.Join(err, done())
		}
		if r.At > o.duration {
			break
		}
		requests = append(requests, r)
	}
	if len(requests) == 0 {
		return nil, errors.Join(fmt.Errorf("%s: no request within %v", o.file, o.duration), done())
	}
	return requests, done()
}

func (o *loadOptions) source() (simulate.Source, func() error, error) {
	if strings.HasSuffix(o.file, ".yaml") || strings.HasSuffix(o.file, ".yml") {
		text, err := readInput(o.file)
		if err != nil {
			return nil, nil, err
		}
		w, err := simulate.DecodeWorkload(text)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", o.file, err)
		}
		if err := w.CheckOpen(); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", o.file, err)
		}
		o.block = w.Block()
		return &faster{w.Requests(o.seed), o.speed}, func() error { return nil }, nil
	}
	if _, err := os.Stat(o.file); err != nil {
		return nil, nil, err
	}
	trace := simulate.OpenTrace(o.file, func() (io.ReadCloser, error) { return os.Open(o.file) }, simulate.TraceOptions{
		Speed: o.speed, Flow: o.flow, Most: o.requests, Repeat: o.repeat, Block: o.block,
	})
	return trace, trace.Close, nil
}

// faster is a source played faster.
type faster struct {
	simulate.Source
	speed float64
}

// Next implements simulate.Source.
func (f *faster) Next() (simulate.Request, error) {
	r, err := f.Source.Next()
	r.At = time.Duration(float64(r.At) / f.speed)
	return r, err
}

// The values of --api.
const (
	apiChat        = "chat"
	apiCompletions = "completions"
)

// plan returns the load to send.
func (o *loadOptions) plan(requests []simulate.Request) loadgen.Plan {
	at := make([]time.Duration, len(requests))
	for i := range requests {
		at[i] = requests[i].At
	}
	template := loadgen.Template{
		Path: "/v1/chat/completions", Header: o.header, Usage: true, Stream: true,
		Headers: func(i int) http.Header { return o.headersOf(&requests[i]) },
		Body:    func(i int) []byte { return o.body(&requests[i], uint64(i)) },
	}
	if o.api == apiCompletions {
		template.Path = "/v1/completions"
	}
	return loadgen.Plan{
		Workloads: []loadgen.Workload{{
			Tenant: "load", Arrivals: loadgen.Schedule{At: at, MaxInFlight: o.connections}, Request: template,
			Requests: len(requests), Duration: at[len(at)-1] + time.Second, Timeout: o.timeout,
		}},
		Drain: o.timeout,
	}
}

// headersOf returns the headers of one request.
func (o *loadOptions) headersOf(r *simulate.Request) http.Header {
	h := http.Header{"Content-Type": {"application/json"}}
	if o.flowHeader != "" {
		h.Set(o.flowHeader, r.Flow)
	}
	if o.tierHeader != "" && r.Tier != "" {
		h.Set(o.tierHeader, r.Tier)
	}
	return h
}

// body returns the body of one request. Its prompt's JSON has the bytes of its tokens, above a minimum.
func (o *loadOptions) body(r *simulate.Request, number uint64) []byte {
	before, after := `"messages":[{"role":"user","content":"`, `"}]`
	overhead := len(before) - len(`"messages":`) + len(after)
	if o.api == apiCompletions {
		before, after, overhead = `"prompt":"`, `"`, 2
	}
	bytes := max(1, r.Prompt*o.bytes-overhead)
	texts := simulate.Texts{BlockBytes: o.block * o.bytes, Seed: o.seed}
	body := make([]byte, 0, bytes+len(o.model)+256)
	model, _ := json.Marshal(o.model) // a string always has a JSON form
	body = fmt.Appendf(body, `{"model":%s,%s`, model, before)
	body = texts.Append(body, r, bytes, number)
	body = fmt.Appendf(body, `%s,"max_tokens":%d,"stream":true,"stream_options":{"include_usage":true}`, after, r.Output)
	if o.ignoreEOS {
		body = append(body, `,"ignore_eos":true`...)
	}
	return append(body, '}')
}
