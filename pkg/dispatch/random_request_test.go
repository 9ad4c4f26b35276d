package dispatch_test

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/scheduling"
	"github.com/weir-epp/weir/pkg/stock"
)

// request is one request with its plan, and the test's data on it.
type request struct {
	w      dispatch.Waiter
	load   *load
	number int // among those of its load
	plan

	phase    phase
	lives    int // how often it was granted
	came     time.Time
	began    time.Time // it has had its lease since
	expires  time.Time // its time in the queue is over
	ttl      bool      // by the queue's TTL; otherwise by its own deadline
	at       scheduling.EndpointID
	holds    stock.Tokens // of the stock
	counts   bool         // against its flow's cap at its endpoint
	class    string
	query    *scheduling.Query
	lane     string
	promoted bool
	passedOn bool // it was not queued, and is charged nothing
	sent     bool
	streams  bool

	overQuota bool     // it was refused by its tenant's quota
	countsFor string   // whose use of a quota it counts for
	counted   *counted // against that; nil: it does not count
	charges   []*charge
	failed    time.Time // its engine has; zero: it has not
	reads     int64     // tokens of its prompt that its endpoint has to read
	wasHeld   bool      // it has waited because its class was blocked
	byOwn     int       // how often its flow has overtaken it, and how often others have in its turn
	byOther   int
}

// phase is where a request is.
type phase uint8

const (
	coming  phase = iota
	waiting       // in the queue
	running       // it holds a lease
	ended
)

// plan is the fate of a request, independent of others.
type plan struct {
	cost, actual         fairqueue.Cost // as estimated, and as it turns out
	tokens, actualTokens stock.Tokens
	runs, pause          time.Duration
	patience             time.Duration // its client leaves if it has waited as long; 0: it does not
	deadline             time.Duration // after its arrival; 0: none
	slow                 time.Duration // from the grant to the destination
	firstByte            time.Duration
	abandons             bool // when it is granted and not yet sent
	grows, early         bool // the cost is raised, or known, in flight
	never                bool // it is not known
	moves                int  // a fallback serves it, by position; below 0: none does
	passesOn             bool
	gone                 bool // its client has left when it is asked whether to preempt
}

// planned makes the plan of a request.
func planned(s *scene, l *load, number int) plan {
	r := rand.New(rand.NewPCG(s.seed, uint64(l.id)<<32|uint64(number)|1<<63))
	p := plan{
		actual: l.cost * fairqueue.Cost(1+r.IntN(l.spread)), runs: around(r, l.runs), pause: around(r, l.pause), moves: -1,
	}
	p.cost = p.actual
	switch l.estimates {
	case wrong:
		p.cost = max(1, p.actual*fairqueue.Cost(1+r.IntN(16))/4)
	case greedy:
		p.cost *= 4
	case exact:
	}
	p.tokens, p.actualTokens = stock.Tokens(p.cost)*stock.Tokens(l.factor), stock.Tokens(p.actual)*stock.Tokens(l.factor)
	p.firstByte = time.Duration(r.Int64N(int64(p.runs)))
	leaves, abandons, slow, deadline := chance(r, l.fates.leave), chance(r, l.fates.abandon), chance(r, l.fates.slow), chance(r, l.fates.deadline)
	p.grows, p.early = chance(r, l.fates.grow), chance(r, l.fates.early)
	p.never = chance(r, l.fates.never)
	moves, hurried := chance(r, l.fates.move), chance(r, l.fates.hurried)
	p.passesOn, p.gone = chance(r, l.fates.passOn), chance(r, l.fates.leave)
	wait := time.Duration(1+r.IntN(3000)) * time.Millisecond
	if leaves {
		p.patience = wait
	}
	if deadline {
		p.deadline = wait / 2
	}
	if slow || abandons {
		p.slow, p.abandons = time.Duration(1+r.IntN(40))*time.Millisecond, abandons
	}
	if moves {
		p.moves = r.IntN(mostEndpoints)
	}
	if hurried {
		p.firstByte = 0
	}
	return p
}

// around is a time from half to one and a half times this.
func around(r *rand.Rand, d time.Duration) time.Duration {
	if d == 0 {
		return 0
	}
	return d/2 + time.Duration(r.Int64N(int64(d)))
}

func (r *request) String() string {
	return fmt.Sprintf("request %d.%d (tier %s, flow %s, model %q, subset %v)", r.load.id, r.number, r.load.tier, r.load.flow,
		r.load.ask.Model, r.load.ask.Subset.Entries)
}

// path is the request's path, never nil.
func (r *request) path() fairqueue.Path {
	p := fairqueue.Path{}
	if r.load.path != nil {
		p = *r.load.path
	}
	if n := len(r.load.roles); n > 0 {
		p.Role = r.load.roles[r.number%n]
	}
	if r.query != nil {
		p.Prompt = r.prompt()
	}
	return p
}

// due is the client's own deadline, or else the end of the TTL.
func (r *request) due() time.Time {
	if r.deadline > 0 {
		return r.came.Add(r.deadline)
	}
	return r.expires
}

// final returns the request's final charge.
func (r *request) final() fairqueue.Cost {
	switch {
	case r.abandons:
		return 0
	case r.never && !r.early && !r.grows:
		return r.cost
	}
	return r.actual
}
