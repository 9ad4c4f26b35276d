package simulate

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/weir-epp/weir/pkg/request"
	"github.com/weir-epp/weir/pkg/scheduling"
)

// Peer is another router's choice of an engine by its published formula: a model without its code. It has no queue, and
// estimates the engines' cached prompts by the same index as Weir.
type Peer struct {
	// Name is the name of the rows in reports.
	Name string
	// choose returns an engine for a request of prompt tokens.
	choose func(p *peers, prompt int64, ratings *scheduling.Ratings) int
}

// Peers are the compared routers.
var Peers = []Peer{
	// The engine with the fewest requests.
	{"least requests", (*peers).fewest},
	// llm-d's default weights: queue-scorer 2, kv-cache-utilization-scorer 2, prefix-cache-scorer 3, with engine
	// metrics up to 50 ms old.
	{"llm-d, weighted", (*peers).weighted},
	// cache_aware of SMG, and of SGLang's router before it, with cache_threshold 0.3, balance_abs_threshold 64 and
	// balance_rel_threshold 1.5.
	{"SMG, cache_aware", (*peers).cacheAware},
	// LMetric (arXiv 2603.15202).
	{"LMetric", (*peers).lmetric},
	// Dynamo's KV router, with an overlap weight of 1 and temperature 0.
	{"Dynamo, KV router", (*peers).dynamo},
}

// peers is the state of one peer during a run. The zero value has no peer.
type peers struct {
	*affinity
	choice Peer
	all    []scheduling.EndpointID
	at     []peerAt // by engine
	turn   int      // start of the search at ties

	read time.Time // when the engines' metrics were read
}

// peerAt is a router's counts at an engine.
type peerAt struct {
	requests int
	unread   int64   // uncached tokens of prompts without a first token yet
	held     int64   // tokens of prompts in flight
	placed   int64   // new tokens of prompts there: the size of its prefix tree
	waiting  int     // by its metrics
	used     float64 // of its KV cache, by its metrics
}

// metricsAge is the largest age of the engines' metrics.
const metricsAge = 50 * time.Millisecond

// follow makes a peer decide in a simulation, whose configuration has neither queue nor affinity.
func (s *simulation) follow(p *Peer, caches *affinity) {
	s.peers = &peers{affinity: caches, choice: *p, at: make([]peerAt, len(s.engines))}
	for e := range s.engines {
		s.peers.all = append(s.peers.all, scheduling.EndpointID(e))
	}
}

// ask returns the engine that the peer chooses for a request, and counts the request there.
func (s *simulation) ask(v *visit) int {
	p := s.peers
	if s.now.Sub(p.read) >= metricsAge {
		p.read = s.now
		for e := range p.at {
			s.note(e, s.engines[e].Advance(s.now))
			load := s.engines[e].Published()
			p.at[e].waiting, p.at[e].used = load.Waiting, load.KVUsage
		}
	}
	tokens := int64(v.asked.Prompt)
	v.prompt = p.prompt(&v.asked, tokens)
	ratings := p.index.Match(&v.prompt, p.all)
	e := p.choice.choose(p, tokens, &ratings)
	p.turn = (e + 1) % len(p.at)
	if len(v.prompt.Keys) > 0 {
		v.placed = p.index.Place(&v.prompt, &ratings, scheduling.EndpointID(e))
	}
	v.unread = max(1, tokens-ratings.Cached(scheduling.EndpointID(e)))
	at := &p.at[e]
	at.requests++
	at.unread += v.unread
	at.placed += v.unread
	at.held += tokens
	return e
}

// began notes the first token of a request.
func (p *peers) began(v *visit) {
	if p != nil {
		p.at[v.engine].unread -= v.unread
	}
}

// ended notes the end of a request.
func (p *peers) ended(v *visit) {
	if p != nil {
		p.at[v.engine].requests--
		p.at[v.engine].held -= int64(v.asked.Prompt)
	}
}

// least returns the engine with the least value; equal ones take turns.
func (p *peers) least(value func(e int) float64) int {
	best, least := 0, math.Inf(1)
	for i := range p.at {
		e := (p.turn + i) % len(p.at)
		if v := value(e); v < least {
			best, least = e, v
		}
	}
	return best
}

func (p *peers) fewest(int64, *scheduling.Ratings) int {
	return p.least(func(e int) float64 { return float64(p.at[e].requests) })
}

func (p *peers) weighted(prompt int64, r *scheduling.Ratings) int {
	waiting := func(a, b peerAt) int { return cmp.Compare(a.waiting, b.waiting) }
	fewest, most := slices.MinFunc(p.at, waiting).waiting, slices.MaxFunc(p.at, waiting).waiting
	return p.least(func(e int) float64 {
		queue := 1.0
		if most > fewest {
			queue = float64(most-p.at[e].waiting) / float64(most-fewest)
		}
		return -(2*queue + 2*(1-p.at[e].used) + 3*part(r, e, prompt))
	})
}

func (p *peers) cacheAware(prompt int64, r *scheduling.Ratings) int {
	requests := func(a, b peerAt) int { return cmp.Compare(a.requests, b.requests) }
	fewest, most := slices.MinFunc(p.at, requests).requests, slices.MaxFunc(p.at, requests).requests
	if most-fewest > 64 && float64(most) > 1.5*float64(fewest) {
		return p.fewest(prompt, r)
	}
	best := p.least(func(e int) float64 { return -part(r, e, prompt) })
	if part(r, best, prompt) > .3 {
		return best
	}
	return p.least(func(e int) float64 { return float64(p.at[e].placed) })
}

func (p *peers) lmetric(prompt int64, r *scheduling.Ratings) int {
	return p.least(func(e int) float64 {
		return float64(prompt-r.Cached(scheduling.EndpointID(e))) * float64(1+p.at[e].requests)
	})
}

func (p *peers) dynamo(prompt int64, r *scheduling.Ratings) int {
	return p.least(func(e int) float64 {
		return float64(p.at[e].unread+prompt-r.Cached(scheduling.EndpointID(e))) + float64(p.at[e].held+prompt)
	})
}

// part returns the part of a prompt that an engine has cached.
func part(r *scheduling.Ratings, e int, prompt int64) float64 {
	return float64(r.Cached(scheduling.EndpointID(e))) / float64(max(1, prompt))
}

// byPrefix is the affinity for the peers' estimate of cached prompts.
var byPrefix = request.Affinity{Mode: request.AffinityPrefix, Scope: request.ScopeAll}
