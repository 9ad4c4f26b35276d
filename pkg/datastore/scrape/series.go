package scrape

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// engine is a kind of engine, in order of precedence on a page with metrics of several.
type engine uint8

const (
	configured engine = iota // by Config.Names
	vllm
	sglang
	trtllm
	triton
	llamacpp
	numEngines
)

// String returns the name of the engine.
func (e engine) String() string {
	return [numEngines]string{"configured", "vLLM", "SGLang", "trtllm-serve", "Triton", "llama.cpp"}[e]
}

// quantity is a quantity on a page.
type quantity uint8

const (
	running         quantity = iota // requests in the batch
	waiting                         // requests in the engine's queue
	lacking                         // the waiters for room
	cacheUsed                       // the used share of the KV cache
	cacheBlocks                     // blocks of the KV cache
	blockTokens                     // tokens of a block
	cacheTokens                     // tokens of the KV cache
	preemptions                     // since the start
	produced                        // tokens of answers since the start
	utilised                        // utilisation of the processors, as a share
	utilisedPercent                 // the same in percent
	numQuantities
)

// series locates a quantity on a page.
type series struct {
	engine engine
	what   quantity
	labels []label // required of the series
	from   string  // the label whose value is the quantity; empty: the series' own value is
}

type label struct{ name, value string }

// known are the metrics of each engine by name. An engine's older names are further entries: no page has both.
var known = map[string][]series{
	"vllm:num_requests_running":           {{engine: vllm, what: running}},
	"vllm:num_requests_waiting":           {{engine: vllm, what: waiting}},
	"vllm:num_requests_waiting_by_reason": {{engine: vllm, what: lacking, labels: []label{{"reason", "capacity"}}}},
	"vllm:kv_cache_usage_perc":            {{engine: vllm, what: cacheUsed}},
	"vllm:gpu_cache_usage_perc":           {{engine: vllm, what: cacheUsed}},
	"vllm:cache_config_info": {
		{engine: vllm, what: cacheBlocks, from: "num_gpu_blocks"},
		{engine: vllm, what: blockTokens, from: "block_size"},
		{engine: vllm, what: cacheTokens, from: "kv_cache_size_tokens"},
	},
	"vllm:num_preemptions_total":   {{engine: vllm, what: preemptions}},
	"vllm:generation_tokens_total": {{engine: vllm, what: produced}},

	"sglang:num_running_reqs": {{engine: sglang, what: running}},
	"sglang:num_queue_reqs":   {{engine: sglang, what: waiting}},
	"sglang:token_usage":      {{engine: sglang, what: cacheUsed}},
	"sglang:cache_config_info": {
		{engine: sglang, what: cacheBlocks, from: "num_pages"},
		{engine: sglang, what: cacheBlocks, from: "num_gpu_blocks"},
		{engine: sglang, what: blockTokens, from: "page_size"},
		{engine: sglang, what: blockTokens, from: "block_size"},
	},
	"sglang:max_total_num_tokens": {{engine: sglang, what: cacheTokens}},
	// sglang:num_retracted_reqs is a gauge that restarts with each line of SGLang's log.
	"sglang:num_retracted_requests_total": {{engine: sglang, what: preemptions}},
	"sglang:num_retracted_reqs_total":     {{engine: sglang, what: preemptions}},
	"sglang:generation_tokens_total":      {{engine: sglang, what: produced}},

	"trtllm_num_requests_running":      {{engine: trtllm, what: running}},
	"trtllm_num_requests_waiting":      {{engine: trtllm, what: waiting}},
	"trtllm_kv_cache_utilization":      {{engine: trtllm, what: cacheUsed}},
	"trtllm_kv_cache_max_blocks":       {{engine: trtllm, what: cacheBlocks}},
	"trtllm_kv_cache_tokens_per_block": {{engine: trtllm, what: blockTokens}},

	"nv_trt_llm_request_metrics": {
		{engine: triton, what: running, labels: []label{{"request_type", "scheduled"}}},
		{engine: triton, what: waiting, labels: []label{{"request_type", "waiting"}}},
	},
	"nv_trt_llm_kv_cache_block_metrics": {
		{engine: triton, what: cacheUsed, labels: []label{{"kv_cache_block_type", "fraction"}}},
		{engine: triton, what: cacheBlocks, labels: []label{{"kv_cache_block_type", "max"}}},
		{engine: triton, what: blockTokens, labels: []label{{"kv_cache_block_type", "tokens_per"}}},
	},

	// Triton's own series, and those of NVIDIA's exporter if they are on an engine's page.
	"nv_gpu_utilization":   {{engine: configured, what: utilised}},
	"DCGM_FI_DEV_GPU_UTIL": {{engine: configured, what: utilisedPercent}},

	"llamacpp:requests_processing":    {{engine: llamacpp, what: running}},
	"llamacpp:requests_deferred":      {{engine: llamacpp, what: waiting}},
	"llamacpp:kv_cache_usage_ratio":   {{engine: llamacpp, what: cacheUsed}},
	"llamacpp:tokens_predicted_total": {{engine: llamacpp, what: produced}},
}

// seriesOf returns the known series and the configured ones by the name of their metric.
func seriesOf(names Names) map[string][]series {
	if len(names.all()) == 0 {
		return known
	}
	all := maps.Clone(known)
	add := func(text string, parts ...series) {
		if text == "" {
			return
		}
		name, labels, _ := parseName(text) // validated
		for _, s := range parts {
			s.labels = labels
			all[name] = append(slices.Clip(all[name]), s)
		}
	}
	add(names.Running, series{what: running})
	add(names.Waiting, series{what: waiting})
	add(names.CacheUsed, series{what: cacheUsed})
	add(names.CacheInfo, series{what: cacheBlocks, from: "num_gpu_blocks"}, series{what: blockTokens, from: "block_size"})
	return all
}

// parseName parses NAME or NAME{LABEL="VALUE",…}; the quotes may be left out.
func parseName(text string) (name string, labels []label, err error) {
	name, rest, braces := strings.Cut(text, "{")
	if name == "" || strings.ContainsAny(name, " \t\n#\"=,}") {
		return "", nil, errors.New(`must be the name of a metric, such as vllm:num_requests_running or name{label="value"}`)
	}
	if !braces {
		return name, nil, nil
	}
	rest, closed := strings.CutSuffix(rest, "}")
	if !closed {
		return "", nil, errors.New("must end with }, since it has a {")
	}
	for pair := range strings.SplitSeq(rest, ",") {
		key, value, ok := strings.Cut(strings.TrimSpace(pair), "=")
		if key = strings.TrimSpace(key); !ok || key == "" {
			return "", nil, fmt.Errorf(`%q must be label="value"`, pair)
		}
		labels = append(labels, label{key, strings.Trim(strings.TrimSpace(value), `"`)})
	}
	return name, labels, nil
}
