package modelsim

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Stats is the state of the model server. Each Started request is Completed, Failed, Aborted or InFlight.
type Stats struct {
	Started, Completed, Failed, Aborted uint64 // inference requests since the start

	InFlight    int // inference requests now
	MaxInFlight int // the maximum so far

	// In the engine, in sequences (n answers to a prompt count n times). After an abort a sequence may stay for the
	// engine's abort delay. For an instant server these are the requests in flight.
	Running, Waiting int
	MaxRunning       int // the maximum so far
	MaxLoad          int // the maximum of running and waiting together

	KVUsage         float64 // 0 to 1
	MaxKVTokens     int     // the largest number of tokens in the KV cache so far, in whole blocks
	GeneratedTokens uint64
	PromptTokens    uint64 // of the sequences that have run
	CachedTokens    uint64 // of PromptTokens, the cached ones
	Preemptions     uint64
}

// Stats returns the statistics. They are consistent only while nothing changes.
func (h *Handler) Stats() Stats {
	s := Stats{
		Completed:   h.completed.Load(),
		Failed:      h.failed.Load(),
		Aborted:     h.aborted.Load(),
		InFlight:    int(h.inFlight.Load()),
		MaxInFlight: int(h.maxInFlight.Load()),
		Started:     h.started.Load(),
	}
	if h.cfg.Instant {
		s.Running, s.MaxRunning, s.MaxLoad = s.InFlight, s.MaxInFlight, s.MaxInFlight
		s.GeneratedTokens = s.Completed * uint64(h.cfg.DefaultOutputTokens)
		return s
	}
	load, maxLoad, maxRunning := h.runner.load()
	s.Running, s.Waiting = load.Running, load.Waiting
	s.MaxRunning, s.MaxLoad = maxRunning, maxLoad
	s.KVUsage, s.GeneratedTokens, s.Preemptions = load.KVUsage, load.GeneratedTokens, load.Preemptions
	s.MaxKVTokens, s.PromptTokens, s.CachedTokens = load.MaxKVTokens, load.PromptTokens, load.CachedTokens
	return s
}

// Records returns the records of the last Config.Records inference requests, the oldest first.
func (h *Handler) Records() []Record { return h.log.all() }

// enter counts the start of a request.
func (h *Handler) enter() {
	n := h.inFlight.Add(1)
	for {
		most := h.maxInFlight.Load()
		if n <= most || h.maxInFlight.CompareAndSwap(most, n) {
			break
		}
	}
	h.watch.poke()
}

// end counts the end of a request, once.
func (v *visit) end() {
	if v.h.cfg.Records > 0 {
		v.h.log.change(v.place, v.number, func(r *Record) {
			r.Ended = time.Now()
			r.Outcome = v.outcome
			if v.worked != nil {
				r.Prompt, r.Output = v.worked.promptTokens(), v.worked.outputTokens()
			}
		})
	}
	switch v.outcome {
	case Completed:
		v.h.completed.Add(1)
	case Aborted:
		v.h.aborted.Add(1)
	case InFlight, Failed:
		v.h.failed.Add(1)
	}
	v.h.inFlight.Add(-1)
	v.h.watch.poke()
}

// record records the request.
func (v *visit) record(r *http.Request, body []byte) {
	if v.h.cfg.Records == 0 {
		return
	}
	kept := body[:min(len(body), v.h.cfg.RecordBodyBytes)]
	v.place = v.h.log.add(Record{
		Number:    v.number,
		Tag:       r.Header.Get(v.h.cfg.TagHeader),
		Method:    r.Method,
		Path:      r.URL.RequestURI(),
		Proto:     r.Proto,
		Host:      r.Host,
		Header:    r.Header.Clone(),
		Body:      append([]byte(nil), kept...),
		BodyBytes: len(body),
		Arrived:   time.Now(),
	})
}

// firstToken records that the first token is about to be written.
func (v *visit) firstToken() {
	if v.h.cfg.Records == 0 {
		return
	}
	now := time.Now()
	v.h.log.change(v.place, v.number, func(r *Record) { r.FirstToken = now })
}

// published returns Stats with the engine's published load.
func (h *Handler) published() Stats {
	if h.cfg.Instant {
		return h.Stats()
	}
	load := h.runner.published()
	s := h.Stats()
	s.Running, s.Waiting, s.GeneratedTokens = load.Running, load.Waiting, load.GeneratedTokens
	return s
}

// labelEscaper escapes a label's value for the text format.
var labelEscaper = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// exposition returns the metrics in Prometheus' text format, under vLLM's names.
func (h *Handler) exposition() []byte {
	s := h.published()
	labels := `engine="0",model_name="` + labelEscaper.Replace(h.cfg.Model) + `"`
	var b bytes.Buffer
	metric := func(name, kind, help, labels string, value float64) {
		fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s %s\n%s{%s} %s\n",
			name, help, name, kind, name, labels, strconv.FormatFloat(value, 'g', -1, 64))
	}
	metric("vllm:num_requests_running", "gauge",
		"Number of requests in model execution batches.", labels, float64(s.Running))
	metric("vllm:num_requests_waiting", "gauge",
		"Number of requests waiting to be processed.", labels, float64(s.Waiting))
	metric("vllm:num_requests_waiting_by_reason", "gauge",
		"Number of waiting requests by reason.", labels+`,reason="capacity"`, float64(s.Waiting))
	fmt.Fprintf(&b, "vllm:num_requests_waiting_by_reason{%s,reason=\"deferred\"} 0\n", labels)
	metric("vllm:kv_cache_usage_perc", "gauge",
		"KV-cache usage. 1 means 100 percent usage.", labels, s.KVUsage)
	metric("vllm:cache_config_info", "gauge",
		"Information of the LLMEngine CacheConfig.", labels+h.cacheLabels(), 1)
	metric("vllm:prefix_cache_queries_total", "counter",
		"Prefix cache queries, in terms of number of queried tokens.", labels, float64(s.PromptTokens))
	metric("vllm:prefix_cache_hits_total", "counter",
		"Prefix cache hits, in terms of number of cached tokens.", labels, float64(s.CachedTokens))
	metric("vllm:prompt_tokens_total", "counter",
		"Number of prefill tokens processed.", labels, float64(s.PromptTokens))
	metric("vllm:generation_tokens_total", "counter",
		"Number of generation tokens processed.", labels, float64(s.GeneratedTokens))
	metric("vllm:num_preemptions_total", "counter",
		"Cumulative number of preemption from the engine.", labels, float64(s.Preemptions))
	return b.Bytes()
}

// cacheLabels are the cache's sizes, as labels of an info metric.
func (h *Handler) cacheLabels() string {
	cfg := h.cfg.Engine
	tokens := cfg.BlockSize * cfg.Blocks
	concurrency := 0.0
	if h.cfg.MaxModelLen > 0 {
		concurrency = float64(tokens) / float64(h.cfg.MaxModelLen)
	}
	return fmt.Sprintf(`,block_size="%d",num_gpu_blocks="%d",kv_cache_size_tokens="%d",kv_cache_max_concurrency="%g"`,
		cfg.BlockSize, cfg.Blocks, tokens, concurrency)
}
