package modelsim

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// labelEscaper escapes a label's value for the text format.
var labelEscaper = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// exposition returns the metrics in Prometheus' text format, under vLLM's names.
func (h *Handler) exposition() []byte {
	s := h.Stats()
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
