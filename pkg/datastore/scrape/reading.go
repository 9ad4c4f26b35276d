package scrape

import "github.com/weir-epp/weir/pkg/scheduling"

// Reading is the content of one page. Numbers that the page lacks are 0.
type Reading struct {
	// Engine is the name of the engine.
	Engine string
	// Running and Waiting are all requests in the engine's batch and in its queue. Lacking counts the waiters for room
	// in the batch or in memory; all of Waiting if the engine gives no reasons.
	Running, Waiting, Lacking int
	// CacheUsed is the used share of the KV cache, in millionths, and CacheTokens its size in tokens.
	CacheUsed   int32
	CacheTokens int64
	// Utilised is its processors' utilisation in millionths, if StatesUtilised; without such a metric it is CacheUsed.
	Utilised       int32
	StatesUtilised bool
	// Preemptions is the number of requests preempted, and Produced the number of tokens generated, since the engine's
	// start.
	Preemptions, Produced int64
	// Adapters is the page's state of LoRA adapters; nil: none.
	Adapters *scheduling.AdapterState
}

// signals returns the reading as scheduling.Signals.
func (r *Reading) signals() scheduling.Signals {
	return scheduling.Signals{
		Known: true, Running: int32(r.Running), Waiting: int32(r.Lacking), CacheUsed: r.CacheUsed,
		CacheTokens: r.CacheTokens, Preemptions: r.Preemptions, Produced: r.Produced,
		Utilised: r.Utilised, StatesUtilised: r.StatesUtilised,
	}
}

// Bounds of valid counts of requests and of tokens on a page.
const (
	maxRequests = 1_000_000
	maxCount    = 1 << 50
	maxTokens   = 1 << 40
)

// sums are the quantities of one engine's metrics.
type sums struct {
	value [numQuantities]float64
	known [numQuantities]bool
}

// add adds one series' value. For shares and sizes of blocks the largest value counts, since each rank has its own; all
// other values are summed.
func (s *sums) add(what quantity, value float64) {
	if what == cacheUsed || what == blockTokens || what == utilised || what == utilisedPercent {
		s.value[what] = max(s.value[what], value)
	} else {
		s.value[what] += value
	}
	s.known[what] = true
}

// complete reports whether the quantities give the number of requests.
func (s *sums) complete() bool { return s.known[running] && s.known[waiting] }

// reading returns the quantities as a reading.
func (s *sums) reading(e engine) Reading {
	r := Reading{
		Engine:      e.String(),
		Running:     int(min(s.value[running], maxRequests)),
		Waiting:     int(min(s.value[waiting], maxRequests)),
		CacheUsed:   int32(min(s.value[cacheUsed], 1) * 1e6),
		CacheTokens: int64(min(s.value[cacheTokens], maxTokens)),
		Preemptions: int64(min(s.value[preemptions], maxCount)),
		Produced:    int64(min(s.value[produced], maxCount)),
	}
	switch {
	case s.known[utilised]:
		r.Utilised, r.StatesUtilised = int32(min(s.value[utilised], 1)*1e6), true
	case s.known[utilisedPercent]:
		r.Utilised, r.StatesUtilised = int32(min(s.value[utilisedPercent], 100)*1e4), true
	case s.known[cacheUsed]:
		r.Utilised, r.StatesUtilised = r.CacheUsed, true
	}
	r.Lacking = r.Waiting
	if s.known[lacking] {
		r.Lacking = int(min(s.value[lacking], float64(r.Waiting)))
	}
	if r.CacheTokens == 0 {
		r.CacheTokens = int64(min(s.value[cacheBlocks]*s.value[blockTokens], maxTokens))
	}
	return r
}
