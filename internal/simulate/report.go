package simulate

import (
	"slices"
	"time"

	"github.com/weir-epp/weir/pkg/dispatch"
)

// Report is the result of a configuration with a workload.
type Report struct {
	// Name is the configuration's name.
	Name string `json:"name"`
	// Runs is the number of runs if this is their median; 0: one run.
	Runs int `json:"runs,omitempty"`
	// Seconds is the time from the start of the clock to the end of the last answer.
	Seconds float64 `json:"seconds"`
	// TooLong is the number of requests too long for every engine's KV cache. They were not offered.
	TooLong int `json:"tooLong"`
	// All has the figures of all requests, and Flows each flow's, by first arrival; beyond a thousand flows the others
	// are one.
	All   Figures `json:"all"`
	Flows []Flow  `json:"flows"`
	// Engines are the engines, in order; none for a recording.
	Engines []EngineFigures `json:"engines,omitempty"`
	// Service is the evenness of service; nil without Options.Service.
	Service *ServiceFigures `json:"service,omitempty"`
	// Over is the run over time.
	Over Timeline `json:"over"`
	// Recording is the recording of all decisions; nil without Options.Record.
	Recording []byte `json:"-"`
}

// Flow has the figures of one flow.
type Flow struct {
	Flow string `json:"flow"`
	Figures
}

// Figures describe some requests. Times are in seconds, rates per second of the whole run.
type Figures struct {
	Requests int `json:"requests"`
	// Answered is the number of answered requests, and Rejected the numbers of the others, by reason.
	Answered int            `json:"answered"`
	Rejected map[string]int `json:"rejected,omitempty"`
	// TooLong is the number of requests not offered, too long for every engine's KV cache.
	TooLong int `json:"tooLong,omitempty"`
	// Wait is the time from the arrival to the grant, of all granted requests. TTFT is from the arrival to the first
	// token, Total to the last, and PerToken between two tokens, of all answered requests.
	Wait     Times `json:"wait"`
	TTFT     Times `json:"ttft"`
	Total    Times `json:"total"`
	PerToken Times `json:"perToken"`
	// PromptTokens are the answered requests' prompt tokens, and CachedTokens the cached ones of these.
	PromptTokens int64 `json:"promptTokens"`
	CachedTokens int64 `json:"cachedTokens"`
	OutputTokens int64 `json:"outputTokens"`
	// Cost is the charge of the answered requests, in the configuration's unit.
	Cost int64 `json:"cost"`
	// HitPercent is the cached part of the prompt tokens.
	HitPercent         float64 `json:"hitPercent"`
	OutputTokensPerSec float64 `json:"outputTokensPerSecond"`
}

// Times describe a distribution, in seconds. Quantiles are at most 1 % too large.
type Times struct {
	Mean float64 `json:"mean"`
	P50  float64 `json:"p50"`
	P95  float64 `json:"p95"`
	P99  float64 `json:"p99"`
	Max  float64 `json:"max"`
}

// EngineFigures describe one engine.
type EngineFigures struct {
	PromptTokens    uint64 `json:"promptTokens"` // of sequences begun
	CachedTokens    uint64 `json:"cachedTokens"` // of these, the cached ones
	GeneratedTokens uint64 `json:"generatedTokens"`
	EvictedBlocks   uint64 `json:"evictedBlocks"`
	Preemptions     uint64 `json:"preemptions"` // for lack of blocks
}

// Timeline is a run over time, in intervals of one length. All lists have an element for each interval.
type Timeline struct {
	IntervalSeconds float64 `json:"intervalSeconds"`
	// Granted is the number of requests granted in the interval, and Answered the number of answers ended in it. Wait
	// is the mean wait of the granted, and TTFT the mean TTFT of the answered, in seconds; 0 if there are none.
	Granted  []int     `json:"granted"`
	Answered []int     `json:"answered"`
	Wait     []float64 `json:"wait"`
	TTFT     []float64 `json:"ttft"`
	// PromptTokens are the prompt tokens of the answers ended in the interval, and CachedTokens the cached ones of
	// these.
	PromptTokens []int64 `json:"promptTokens"`
	CachedTokens []int64 `json:"cachedTokens"`
	// Queued is the number of waiting requests at the interval's end, and Held the number at each engine.
	Queued []int   `json:"queued"`
	Held   [][]int `json:"held"`
	// Service is the prompt and answer tokens of the answers ended in the interval, by flow as in Flows; for a
	// recording, their charge.
	Flows   []string  `json:"flows"`
	Service [][]int64 `json:"service"`
}

// Run runs a simulation to its end.
func Run(o *Options, source Source) (*Report, error) {
	s, err := newSimulation(o, source)
	if err != nil {
		return nil, err
	}
	if err := s.run(); err != nil {
		return nil, err
	}
	r := s.report(o.Name)
	if o.Record {
		if r.Recording, err = s.recorded(); err != nil {
			return nil, err
		}
	}
	return r, nil
}

func (s *simulation) report(name string) *Report {
	r := s.accounts.report(name)
	for _, e := range s.engines {
		l := e.Load()
		r.Engines = append(r.Engines, EngineFigures{
			l.PromptTokens, l.CachedTokens, l.GeneratedTokens, l.EvictedBlocks, l.Preemptions,
		})
	}
	return r
}

// report returns the report of the accounts.
func (a *accounts) report(name string) *Report {
	length := a.last.Sub(epoch)
	r := &Report{Name: name, Seconds: length.Seconds(), TooLong: a.all.tooLong, All: a.all.figures(length), Over: a.series.timeline()}
	for _, key := range a.order {
		r.Flows = append(r.Flows, Flow{key, a.flows[key].figures(length)})
	}
	if a.service != nil {
		r.Service = a.service.figures()
		r.Service.TokensPerSecond = float64(a.all.prompt+a.all.output) / max(r.Seconds, 1e-9)
	}
	return r
}

func (t *tally) figures(length time.Duration) Figures {
	f := Figures{
		Requests: t.arrived, Answered: t.ok, TooLong: t.tooLong, Wait: t.wait.times(), TTFT: t.ttft.times(), Total: t.total.times(),
		PerToken: t.perOutput.times(), PromptTokens: t.prompt, CachedTokens: t.cached, OutputTokens: t.output, Cost: t.cost,
	}
	for o, n := range t.outcomes {
		if n > 0 && dispatch.Outcome(o) != dispatch.OutcomeDispatched {
			if f.Rejected == nil {
				f.Rejected = map[string]int{}
			}
			f.Rejected[dispatch.Outcome(o).String()] = n
		}
	}
	if t.prompt > 0 {
		f.HitPercent = 100 * float64(t.cached) / float64(t.prompt)
	}
	if length > 0 {
		f.OutputTokensPerSec = float64(t.output) / length.Seconds()
	}
	return f
}

func (h *histogram) times() Times {
	return Times{
		h.mean().Seconds(), h.quantile(500).Seconds(), h.quantile(950).Seconds(), h.quantile(990).Seconds(), h.most.Seconds(),
	}
}

func (s *series) timeline() Timeline {
	t := Timeline{IntervalSeconds: s.length.Seconds(), Flows: slices.Clone(s.names)}
	mean := func(sum time.Duration, n int) float64 {
		if n == 0 {
			return 0
		}
		return (sum / time.Duration(n)).Seconds()
	}
	for _, i := range s.intervals {
		t.Granted, t.Answered = append(t.Granted, i.grants), append(t.Answered, i.answers)
		t.Wait = append(t.Wait, mean(i.wait, i.grants))
		t.TTFT = append(t.TTFT, mean(i.ttft, i.answers))
		t.PromptTokens, t.CachedTokens = append(t.PromptTokens, i.prompt), append(t.CachedTokens, i.cached)
		held, service := make([]int, s.engines), make([]int64, len(s.names))
		copy(held, i.held)
		copy(service, i.service)
		t.Queued, t.Held, t.Service = append(t.Queued, i.queued), append(t.Held, held), append(t.Service, service)
	}
	return t
}
