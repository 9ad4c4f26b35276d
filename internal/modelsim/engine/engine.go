package engine

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// ID names a submitted sequence; IDs rise from 1 in arrival order.
type ID uint64

// Job is the work of one sequence.
type Job struct {
	// Prompt and Output are token counts, each at least 1.
	Prompt, Output int
	// Blocks are the hashes of the prompt's blocks of Config.BlockSize tokens, in order; hashes beyond the prompt's
	// full blocks do not count. Jobs with equal hashes from the first on have equal prompts so far, and share these
	// blocks. It may be nil, and must not change while the job is in the engine. Only with Config.Step.
	Blocks []uint64
	// Adapter is the name of the LoRA adapter that the sequence needs; empty: none. Only with Config.Step.
	Adapter string
	// Streamed asks for an event for each token instead of one at the end. First asks for an event for the first token,
	// with Config.Step.
	Streamed, First bool
}

// End is whether and how a sequence ended.
type End uint8

// The ends of a sequence.
const (
	Going    End = iota // not ended: there are new tokens
	Finished            // all its tokens are produced
	Aborted             // removed by Abort
)

// Event is a sequence's progress or end.
type Event struct {
	ID     ID
	At     time.Time // when it happened, never after the now of the call that returned it
	Tokens int       // produced so far
	Cached int       // tokens of the prompt in the cache when the sequence first joined the batch
	End    End
}

// Load is the engine's published state.
type Load struct {
	Running, Waiting int
	KVUsage          float64 // 0 to 1
	MaxKVTokens      int     // the largest size so far of the blocks in use; in fixed time it may exceed the cache
	GeneratedTokens  uint64  // since the start, of all sequences
	PromptTokens     uint64  // since the start, of all sequences that have run: the cache's queries
	CachedTokens     uint64  // of these, the cached ones
	EvictedBlocks    uint64  // since the start
	Preemptions      uint64  // since the start
	AdapterLoads     uint64  // since the start
}

// sequence is one job on its way through the engine.
type sequence struct {
	Job
	id       ID
	produced int // output tokens so far
	running  bool
	blocks   int // KV blocks held

	// Calibrated time.
	ran       bool    // it has been in the batch
	cached    int     // cached tokens when it first joined the batch
	shared    []int32 // held blocks that others can reuse, in prompt order
	published int     // number of the prompt's blocks offered for reuse, or offered by another sequence
	computed  int     // tokens whose KV entries exist
	scheduled int     // tokens that the step in progress computes

	// Fixed time.
	started time.Time
	service time.Duration
	due     time.Time // of the next token, or of the end when not streamed
	number  int32     // in the heap; 0: not in it
}

// timing is one of the two models of service time.
type timing interface {
	// fill starts the work that can start at now: a step, or the service of waiting sequences.
	fill(now time.Time)
	// next returns the time of the next event without further calls.
	next() (time.Time, bool)
	// step carries out the events at now, which next returned; it does not fill.
	step(now time.Time)
	// sync applies the changes until now that have no event.
	sync(now time.Time)
	// published returns the engine's gauges of running and waiting sequences.
	published() (running, waiting int)
	// forget drops a sequence that has just left the running ones.
	forget(s *sequence)
}

// pendingAbort is a client's disconnect not yet noticed by the engine.
type pendingAbort struct {
	at time.Time
	id ID
}

// Engine is the state machine. It is not safe for concurrent use.
type Engine struct {
	cfg  Config
	rng  *rand.Rand
	time timing

	now     time.Time
	lastID  ID
	live    map[ID]*sequence
	waiting []*sequence // arrival order, preempted ones first
	running []*sequence // in the order in which they joined
	aborts  []pendingAbort
	cache   kvCache
	lora    adapters

	generated, prompted, cached, preemptions uint64

	events []Event
}

// New returns an idle engine, or the configuration's errors.
func New(cfg Config) (*Engine, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	e := &Engine{
		cfg:   cfg,
		rng:   rand.New(rand.NewPCG(cfg.Seed, 0x77656972)),
		live:  make(map[ID]*sequence),
		cache: newKVCache(cfg.BlockSize, cfg.Blocks),
		lora:  adapters{room: cfg.Adapters},
	}
	if cfg.fixed() {
		e.time = &fixedTime{engine: e}
	} else {
		e.time = &stepTime{engine: e}
	}
	return e, nil
}

// Submit adds a sequence to the waiting queue and starts it if possible. It returns the events due until now, valid
// until the next call. It panics for a job with less than one token, or one too large for the KV cache (see
// [Config.Fits]).
func (e *Engine) Submit(now time.Time, job Job) (ID, []Event) {
	if job.Prompt < 1 || job.Output < 1 || !e.cfg.Fits(job.Prompt, job.Output) {
		panic(fmt.Sprintf("engine: job %+v cannot run", job))
	}
	e.events = e.events[:0]
	e.advance(now)
	e.lastID++
	s := &sequence{Job: job, id: e.lastID}
	e.live[s.id] = s
	e.waiting = append(e.waiting, s)
	e.time.fill(now)
	e.advance(now)
	return s.id, e.events
}

// Abort ends a sequence AbortDelay from now, unless it has ended by then. An unknown or ended ID is not an error. The
// events are valid until the next call.
func (e *Engine) Abort(now time.Time, id ID) []Event {
	e.events = e.events[:0]
	e.advance(now)
	if _, ok := e.live[id]; ok {
		e.aborts = append(e.aborts, pendingAbort{at: now.Add(e.cfg.AbortDelay), id: id})
		e.advance(now)
	}
	return e.events
}

// Advance does all work due until now and returns the events, in order. The events are valid until the next call.
func (e *Engine) Advance(now time.Time) []Event {
	e.events = e.events[:0]
	e.advance(now)
	return e.events
}

// Next returns the time of the next event without further calls; false if there is none.
func (e *Engine) Next() (time.Time, bool) {
	at, ok := e.time.next()
	if len(e.aborts) > 0 && (!ok || !at.Before(e.aborts[0].at)) {
		return e.aborts[0].at, true
	}
	return at, ok
}

// Load returns the published state as of the last call.
func (e *Engine) Load() Load {
	return Load{
		Running:         len(e.running),
		Waiting:         len(e.waiting),
		KVUsage:         e.cache.usage(),
		MaxKVTokens:     e.cache.peak * e.cache.blockSize,
		GeneratedTokens: e.generated,
		PromptTokens:    e.prompted,
		CachedTokens:    e.cached,
		EvictedBlocks:   e.cache.evictions,
		Preemptions:     e.preemptions,
		AdapterLoads:    e.lora.loads,
	}
}

// Published returns Load as vLLM publishes it at the end of each step: Running are the sequences still running after
// the step, and Waiting those waiting at its begin. So sequences that arrived since do not count as waiting, and a slot
// freed by the step looks empty until the next step ends, even if others wait. In fixed time it is Load.
func (e *Engine) Published() Load {
	l := e.Load()
	l.Running, l.Waiting = e.time.published()
	return l
}

// advance does all work due until now. At the same instant, aborts go first.
func (e *Engine) advance(now time.Time) {
	if now.Before(e.now) {
		panic(fmt.Sprintf("engine: time runs backwards, from %v to %v", e.now, now))
	}
	for {
		at, ok := e.Next()
		if !ok || at.After(now) {
			break
		}
		if len(e.aborts) > 0 && !e.aborts[0].at.After(at) {
			id := e.aborts[0].id
			e.aborts = e.aborts[1:]
			e.time.sync(at.Add(-1)) // the current step ends without it
			if s, ok := e.live[id]; ok {
				e.leave(s, at, Aborted)
			}
		} else {
			e.time.step(at)
		}
		e.time.fill(at)
	}
	e.time.sync(now)
	e.now = now
}

// join moves a waiting sequence into the batch.
func (e *Engine) join(s *sequence) {
	e.waiting = remove(e.waiting, s)
	e.running = append(e.running, s)
	s.running = true
	if !s.ran {
		s.ran = true
		e.prompted += uint64(s.Prompt)
		e.cached += uint64(s.cached)
	}
}

// produce reports one more token, and the end after the last.
func (e *Engine) produce(s *sequence, at time.Time, tokens int) {
	e.generated += uint64(tokens)
	s.produced += tokens
	switch {
	case s.produced >= s.Output:
		e.leave(s, at, Finished)
	case s.Streamed, s.First && s.produced == 1:
		e.events = append(e.events, Event{ID: s.id, At: at, Tokens: s.produced, Cached: s.cached})
	}
}

// leave ends a sequence; no other code does.
func (e *Engine) leave(s *sequence, at time.Time, end End) {
	delete(e.live, s.id)
	if s.running {
		e.running = remove(e.running, s)
		s.running = false
		e.time.forget(s)
	} else {
		e.waiting = remove(e.waiting, s)
	}
	e.cache.free(s)
	e.events = append(e.events, Event{ID: s.id, At: at, Tokens: s.produced, Cached: s.cached, End: end})
}

// freeSlot reports whether one more sequence may run.
func (e *Engine) freeSlot() bool { return e.cfg.Slots == 0 || len(e.running) < e.cfg.Slots }

// jittered spreads a duration by the configured fraction.
func (e *Engine) jittered(d time.Duration) time.Duration {
	if e.cfg.Jitter == 0 {
		return d
	}
	return time.Duration(float64(d) * (1 + e.cfg.Jitter*(2*e.rng.Float64()-1)))
}

// remove removes a sequence from a list and keeps the order of the others. Removing the head, the usual case, is cheap.
func remove(list []*sequence, s *sequence) []*sequence {
	if list[0] == s {
		list[0] = nil
		return list[1:]
	}
	i := slices.Index(list, s)
	return slices.Delete(list, i, i+1)
}
