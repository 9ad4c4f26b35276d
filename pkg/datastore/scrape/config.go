package scrape

import (
	"strings"
	"time"

	"github.com/weir-epp/weir/pkg/invalid"
)

// Config names the pages to read, and the time between two readings.
type Config struct {
	// Path is the path of the metrics page, with a leading slash; empty: nothing is read.
	Path string
	// Others are further paths, tried in turn if Path has no readable page.
	Others []string
	// Port is the port of the page; 0: the endpoint's own.
	Port int
	// Scheme is http or https, and Insecure accepts any certificate.
	Scheme   string
	Insecure bool
	// Interval is the time from the start of one scrape of an endpoint to the start of its next, 100 ms to 1 min, ± a
	// tenth.
	Interval time.Duration
	// Timeout bounds one scrape; it is more than 0.
	Timeout time.Duration
	// MostBytes bounds a page.
	MostBytes int64
	// Names are metrics of unknown engines; they take precedence over known metrics.
	Names Names
}

// Names are names of metrics, each as NAME or NAME{LABEL="VALUE",…}; empty: none.
type Names struct {
	// Running and Waiting are gauges of requests, CacheUsed a gauge from 0 to 1. CacheInfo has the labels block_size
	// and num_gpu_blocks. Adapters has the labels running_lora_adapters, waiting_lora_adapters and max_lora, and
	// replaces vllm:lora_requests_info.
	Running, Waiting, CacheUsed, CacheInfo, Adapters string
}

// DefaultConfig returns the configuration without flags.
func DefaultConfig() Config {
	return Config{
		Path: "/metrics", Others: []string{"/prometheus/metrics"}, Scheme: "http", Insecure: true,
		Interval: time.Second, Timeout: 2 * time.Second, MostBytes: 4 << 20,
	}
}

const minInterval, maxInterval = 100 * time.Millisecond, time.Minute

// Validate reports every problem at once, as invalid.Problems.
func (c Config) Validate() error {
	var ps invalid.Problems
	if c.Path != "" && !strings.HasPrefix(c.Path, "/") {
		ps.Add(invalid.At("Path"), c.Path, "must begin with a slash")
	}
	invalid.Within(&ps, invalid.At("Port"), c.Port, 0, 65535)
	if c.Scheme != "http" && c.Scheme != "https" {
		ps.Add(invalid.At("Scheme"), c.Scheme, "must be http or https")
	}
	invalid.Within(&ps, invalid.At("Interval"), c.Interval, minInterval, maxInterval)
	invalid.Above(&ps, invalid.At("Timeout"), c.Timeout, 0)
	invalid.Above(&ps, invalid.At("MostBytes"), c.MostBytes, 0)
	for _, n := range c.Names.all() {
		if _, _, err := parseName(n.text); err != nil {
			ps.Add(invalid.At("Names", n.field), n.text, "%v", err)
		}
	}
	return ps.Err()
}

// named is a name with its field.
type named struct{ field, text string }

// all lists the names that are given.
func (n Names) all() (given []named) {
	for _, one := range []named{
		{"Running", n.Running},
		{"Waiting", n.Waiting},
		{"CacheUsed", n.CacheUsed},
		{"CacheInfo", n.CacheInfo},
		{"Adapters", n.Adapters},
	} {
		if one.text != "" {
			given = append(given, one)
		}
	}
	return given
}
