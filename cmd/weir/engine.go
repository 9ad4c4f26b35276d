package main

import (
	"fmt"
	"io"
	"net"
	"strconv"
	"time"

	"github.com/spf13/pflag"

	"github.com/weir-epp/weir/internal/arguments"
	"github.com/weir-epp/weir/internal/modelsim"
	"github.com/weir-epp/weir/internal/modelsim/engine"
)

const engineAbout = `weir engine serves the simulated engine of weir simulate over HTTP, with vLLM's API, until a signal: /v1/chat/completions,
/v1/completions, /v1/messages and /v1/responses, streamed or not, /metrics, /v1/models and /health. A fixed number of bytes of
a prompt's JSON count as a token; answers are meaningless words, as many as the request's limit allows.

POST /debug/faults makes it fail: {"status": 500, "requests": 10}, {"delay": "5m"} or {"reset": "mid-answer"}. Without
a number of requests the fault applies to all of them. GET lists faults, DELETE ends them.

With --kv-events-port it publishes the changes of its KV cache over ZeroMQ, like vLLM with --kv-events-config. POST
/reset_prefix_cache empties the cache while no request uses it.
`

// mostEngineBody is the largest body accepted by an engine, in bytes.
const mostEngineBody = 64 << 20

// engineOptions are the flags of `weir engine`.
type engineOptions struct {
	host            string
	port, count     int
	model           string
	slots, kvTokens int
	block, budget   int
	prefill         int // tokens per second
	step, perSeq    time.Duration
	bytesPerToken   int
	maxModelLen     int
	output          int
	earlyStop       float64
	caching         bool
	details         bool
	events          int // port
	seed            uint64
}

// runEngine is `weir engine`.
func runEngine(args []string, stdout, stderr io.Writer) int {
	var o engineOptions
	set := flagSet("weir engine")
	o.flags(set)
	if code, ok := readFlags(set, engineAbout, args, o.check, stdout, stderr); !ok {
		return code
	}
	if err := o.serve(stdout, nil); err != nil {
		_, _ = fmt.Fprintf(stderr, "weir engine: %v\n", err)
		return 1
	}
	return 0
}

func (o *engineOptions) flags(set *pflag.FlagSet) {
	set.IntVar(&o.port, "port", 8000, "port; 0: any free one")
	set.StringVar(&o.host, "host", "127.0.0.1", "`address` to listen on")
	set.IntVar(&o.count, "count", 1, "number of engines, on successive ports")
	set.StringVar(&o.model, "model", "simulated", "name of the served model")
	set.IntVar(&o.slots, "slots", 64, "sequences that the engine runs at once (vLLM's --max-num-seqs)")
	set.IntVar(&o.kvTokens, "kv-tokens", 600_000, "tokens that fit the KV cache")
	set.IntVar(&o.block, "block-tokens", 16, "tokens in a block of the KV cache")
	set.IntVar(&o.budget, "token-budget", 8192, "largest number of tokens in a step (vLLM's --max-num-batched-tokens)")
	set.IntVar(&o.prefill, "prefill-tokens-per-second", 15_928, "prompt tokens computed per second")
	set.DurationVar(&o.step, "step-time", 12*time.Millisecond, "time of a step, in which each running sequence gains a token")
	set.DurationVar(&o.perSeq, "step-time-per-sequence", 60*time.Microsecond, "time of a step for each running sequence")
	set.IntVar(&o.bytesPerToken, "bytes-per-token", 4, "bytes of a prompt's JSON that count as a token")
	set.IntVar(&o.maxModelLen, "max-model-len", 0, "largest number of tokens of prompt and answer together; 0: as the KV cache allows")
	set.IntVar(&o.output, "output-tokens", 128, "tokens of an answer if its request has no limit")
	set.Float64Var(&o.earlyStop, "early-stop", 0, "probability at each token that the answer ends before its limit, 0 to 1")
	set.BoolVar(&o.caching, "enable-prefix-caching", true, "reuse the blocks of prompts with the same beginning")
	set.BoolVar(&o.details, "enable-prompt-tokens-details", false, "report the cached tokens of a prompt in the usage")
	set.IntVar(&o.events, "kv-events-port", 0, "port of the KV events over ZeroMQ, plus one for each further engine; 0: none; -1: any free one")
	set.Uint64Var(&o.seed, "seed", 1, "seed of texts and early stops")
}

// check reports every flag out of its range.
func (o *engineOptions) check() error {
	var ps arguments.Problems
	arguments.Within(&ps, "port", o.port, 0, 65_535)
	arguments.Within(&ps, "count", o.count, 1, 1000)
	if o.port > 0 && o.port+o.count-1 > 65_535 {
		ps.Add("count", "%d: there are no %d ports from %d on", o.count, o.count, o.port)
	}
	arguments.Within(&ps, "kv-events-port", o.events, -1, 65_535)
	if o.events > 0 && o.events+o.count-1 > 65_535 {
		ps.Add("kv-events-port", "%d: there are no %d ports from %d on", o.events, o.count, o.events)
	}
	if net.ParseIP(o.host) == nil && o.host != "localhost" {
		ps.Add("host", "%q: must be an IP address", o.host)
	}
	if o.model == "" {
		ps.Add("model", "must be a name")
	}
	arguments.Within(&ps, "slots", o.slots, 1, 1<<20)
	arguments.Within(&ps, "kv-tokens", o.kvTokens, 1, 1<<40)
	arguments.Within(&ps, "block-tokens", o.block, 1, 1<<16)
	if o.kvTokens < o.block {
		ps.Add("kv-tokens", "%d: has no room for a block of %d", o.kvTokens, o.block)
	}
	arguments.Within(&ps, "token-budget", o.budget, 1, 1<<30)
	arguments.Within(&ps, "prefill-tokens-per-second", o.prefill, 1, 1_000_000_000)
	arguments.Within(&ps, "step-time", o.step, time.Microsecond, time.Minute)
	arguments.Within(&ps, "step-time-per-sequence", o.perSeq, 0, time.Minute)
	arguments.Within(&ps, "bytes-per-token", o.bytesPerToken, 1, 1000)
	arguments.Within(&ps, "max-model-len", o.maxModelLen, 0, 1<<40)
	arguments.Within(&ps, "output-tokens", o.output, 1, 1<<22)
	arguments.Within(&ps, "early-stop", o.earlyStop, 0, 1)
	return ps.Err()
}

// config returns the configuration of one engine.
func (o *engineOptions) config() modelsim.Config {
	cfg := modelsim.DefaultConfig()
	cfg.Model, cfg.Seed, cfg.Records = o.model, o.seed, 0
	cfg.Engine = engine.Config{
		Slots: o.slots, TokenBudget: o.budget, BlockSize: o.block, Blocks: o.kvTokens / o.block, Seed: o.seed,
		Step: engine.StepTime{Base: o.step, PerSequence: o.perSeq, PerToken: time.Second / time.Duration(o.prefill)},
	}
	cfg.MaxModelLen, cfg.BytesPerToken, cfg.DefaultOutputTokens, cfg.EarlyStop = o.maxModelLen, o.bytesPerToken, o.output, o.earlyStop
	cfg.PrefixCaching, cfg.PromptTokensDetails = o.caching, o.details
	cfg.MaxBodyBytes, cfg.Faults = mostEngineBody, true
	return cfg
}

// serve serves until a signal, or until stop is closed if it is not nil.
func (o *engineOptions) serve(stdout io.Writer, stop <-chan struct{}) error {
	cfg := o.config()
	for i := range o.count {
		port := o.port
		if port > 0 {
			port += i
		}
		cfg.Address = net.JoinHostPort(o.host, strconv.Itoa(port))
		if o.events != 0 {
			port := 0
			if o.events > 0 {
				port = o.events + i
			}
			cfg.KVEvents = net.JoinHostPort(o.host, strconv.Itoa(port))
		}
		cfg.Seed++
		cfg.Engine.Seed++
		server, err := modelsim.Start(cfg)
		if err != nil {
			return err
		}
		defer server.Close()
		if _, err := fmt.Fprintf(stdout, "engine %s at %s\n", o.model, server.URL()); err != nil {
			return err
		}
		if at := server.KVEvents(); at != "" {
			if _, err := fmt.Fprintf(stdout, "  KV events at tcp://%s\n", at); err != nil {
				return err
			}
		}
	}
	if stop != nil {
		<-stop
		return nil
	}
	return serveUntilSignal(nil, func() {})
}
