package dispatch_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/scheduling"
	"github.com/weir-epp/weir/pkg/stock"
)

// scene is the input of one random machine. Every part can be omitted or made smaller without changing the rest: each
// request depends only on the seed, its load and its number. So a failing scene can be reduced.
type scene struct {
	seed    uint64
	config  dispatch.Config
	pool    []scheduling.Endpoint
	models  bool     // endpoints list models
	prompts bool     // something is known of prompts
	busies  bool     // classes may have busy rules and limits
	metered bool     // tenants may have quotas
	illness *illness // of engines; nil: none fails
	loads   []load
	changes []change
	most    int           // requests
	length  time.Duration // after it no client sends any more
}

// load is one population of equal clients.
type load struct {
	id        int
	tier      string
	flow      string
	path      *fairqueue.Path
	roles     []string // of its requests, in turn; none: that of path
	ask       scheduling.Ask
	clients   int           // closed loop: each sends when its last request has ended; 0: open loop
	pause     time.Duration // mean time between an answer and the next request, or between two arrivals
	begins    time.Duration
	lasts     time.Duration
	runs      time.Duration // mean time of an answer
	cost      fairqueue.Cost
	spread    int // costs are from cost to cost times this
	factor    int // tokens for each unit of cost
	estimates estimates
	fates     fates
}

// estimates is the way costs are estimated.
type estimates uint8

const (
	exact  estimates = iota
	wrong            // by up to the fourfold in both directions
	greedy           // the fourfold
)

// fates are the percentages of requests that meet each fate.
type fates struct {
	leave    int // the client leaves while it waits
	abandon  int // the client leaves when its request is granted and the destination not yet sent
	slow     int // the destination is sent later than the grant
	deadline int // the client has a deadline
	grow     int // the cost is raised in flight, if it was estimated too low
	early    int // the cost is known in flight
	never    int // the cost is never known
	move     int // a fallback serves it
	passOn   int // it is no inference
	hurried  int // the first byte comes at once
}

// change is a change of the configuration or of the pool.
type change struct {
	at      time.Duration
	config  *dispatch.Config
	pool    []scheduling.Endpoint
	foreign []stock.Foreign
}

const (
	mostEndpoints = 5
	tierNames     = "gold silver bronze clay"
	classNames    = "x y z"
)

// some returns an element of a list.
func some[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

// chance is true with this percentage.
func chance(r *rand.Rand, percent int) bool { return r.IntN(100) < percent }

// newScene makes the scene of a seed.
func newScene(seed uint64) *scene {
	r := rand.New(rand.NewPCG(seed, 0))
	s := &scene{seed: seed, most: 300, length: time.Duration(some(r, 5, 10, 20)) * time.Second}
	s.config = firstConfig(r)
	s.models = chance(r, 60)
	s.pool = randomPool(r, 1+r.IntN(mostEndpoints), s.models)
	for id := range 2 + r.IntN(6) {
		s.loads = append(s.loads, randomLoad(r, id, s))
	}
	if chance(r, 40) {
		s.contend(r)
	}
	if chance(r, 60) {
		for range 1 + r.IntN(4) {
			s.changes = append(s.changes, randomChange(r, s))
		}
		slices.SortStableFunc(s.changes, func(a, b change) int { return int(a.at - b.at) })
	}
	if s.config.Queue.Discipline == fairqueue.VTC && seed%2 == 0 {
		s.shareFairly(rand.New(rand.NewPCG(seed, 8)))
	}
	if s.config.Queue.Levels > 1 && s.config.Queue.Discipline != fairqueue.OneFlow && seed%3 > 0 {
		s.boundUsers(rand.New(rand.NewPCG(seed, 9)))
	}
	return s
}

// boundUsers gives the users of tenants weights, caps and capacities, in most scenes.
func (s *scene) boundUsers(r *rand.Rand) {
	bound := func(c *dispatch.Config) {
		c.Levels = []dispatch.LevelCaps{{}, {MaxInFlight: some(r, 0, 1, 2, 3)}}
		if chance(r, 30) {
			c.Levels[1].MaxTokensInFlight = stock.Tokens(some(r, 3, 20))
		}
		c.Queue.ByLevel = []fairqueue.LevelConfig{
			{Weights: c.Queue.Weights}, {Weights: map[string]fairqueue.Weight{"u": some(r, fairqueue.WeightOne, 3*fairqueue.WeightOne)}},
		}
		if chance(r, 30) {
			c.Queue.ByLevel[1].Capacity = min(c.Queue.TotalCapacity, some(r, 2, 10))
		}
	}
	if chance(r, 90) {
		bound(&s.config)
		for i := range s.changes {
			if c := s.changes[i].config; c != nil {
				bound(c)
			}
		}
	}
	for i := range s.loads {
		if l := &s.loads[i]; chance(r, 60) {
			p := fairqueue.Path{}
			if l.path != nil {
				p = *l.path
			}
			p.Under = []string{some(r, "u", "v", "w")}
			l.path = &p
		}
	}
}

// shareFairly makes vtc of a scene fairshare, with random settings.
func (s *scene) shareFairly(r *rand.Rand) {
	fairly := func(q *fairqueue.Config) {
		q.Discipline = fairqueue.FairShare
		q.FairShare.Window = some(r, time.Second, 10*time.Second, 300*time.Second)
		q.FairShare.Threshold, q.FairShare.WaitBonus = some[int64](r, 500_000, 800_000), some[int64](r, 0, 100_000, 5_000_000)
	}
	fairly(&s.config.Queue)
	for i := range s.changes {
		if c := s.changes[i].config; c != nil {
			fairly(&c.Queue)
		}
	}
}

// contend makes some loads compete for the same engines during the whole scene, in one tier, with enough clients to
// wait always. The first two also share a class; the others may be in any class. The remaining loads use other engines,
// or send in between.
func (s *scene) contend(r *rand.Rand) {
	first := &s.loads[0]
	names := strings.Fields(classNames)
	for i := range min(len(s.loads), 2+r.IntN(3)) {
		l := &s.loads[i]
		l.tier, l.ask, l.flow = s.config.Queue.Tiers[0].Name, first.ask, []string{"a", "b", "c", "d"}[i]
		l.clients, l.pause, l.begins, l.lasts = 6+r.IntN(6), 0, 0, s.length
		l.runs, l.fates.leave, l.fates.deadline = first.runs, 0, 0
		if len(s.config.Queue.Classes) > 0 {
			l.path = &fairqueue.Path{Class: names[max(0, i-1)%len(names)]}
		}
	}
	if chance(r, 40) { // as with cost: requests
		for i := range s.loads {
			l := &s.loads[i]
			l.cost, l.spread, l.estimates, l.factor, l.fates = first.cost, 1, exact, 1, fates{}
		}
	}
	if s.most = 2 * s.most; chance(r, 25) { // what costs less than was charged is known at the end
		first.estimates, first.cost = greedy, max(2, first.cost)
		for i := range s.loads {
			s.loads[i].fates = fates{}
		}
	}
	if len(s.loads) > 2 && chance(r, 40) {
		s.beside(r)
	}
	q := &s.config.Queue
	q.TotalCapacity, q.FlowCapacity, q.QueueTTL = 1000, 100, 300*time.Second
	for i := range q.Tiers {
		q.Tiers[i].QueueSize, q.Tiers[i].QueueTimeout = fairqueue.NoLimit, 0
	}
	s.config.Enabled = true
	if q.TierMode == fairqueue.Weighted && len(q.Tiers) > 1 && len(s.loads) > 3 { // tiers contend, too
		for i := range 2 {
			s.loads[2+i].tier = q.Tiers[1].Name
		}
	}
}

// beside lets the first two loads share one engine, and the others use engines of another model, which answer much faster.
func (s *scene) beside(r *rand.Rand) {
	s.models, s.changes = true, nil
	s.pool = randomPool(r, 2+r.IntN(3), true)
	for i := range s.pool {
		s.pool[i].Ready, s.pool[i].Models = true, []string{[]string{"m", "n"}[min(i, 1)]}
	}
	if chance(r, 50) { // it comes and goes
		l := &s.loads[1]
		l.clients, l.pause = 1+r.IntN(3), l.runs/2
	}
	for i := range s.loads {
		l := &s.loads[i]
		l.ask = scheduling.Ask{Model: []string{"m", "n"}[min(i/2, 1)]}
		if i > 1 {
			l.tier, l.path = s.loads[0].tier, s.loads[0].path
			l.runs = max(5*time.Millisecond, s.loads[0].runs/8)
			l.flow = some(r, "a", "b", "c")
			l.clients, l.pause, l.begins = 3, 5*time.Millisecond, s.length/time.Duration(4+r.IntN(20))
		}
	}
}

// firstConfig is a configuration with what cannot change at run time.
func firstConfig(r *rand.Rand) dispatch.Config {
	cfg := dispatch.DefaultConfig()
	cfg.Queue.Discipline = some(r, fairqueue.WFQ, fairqueue.WFQ, fairqueue.VTC, fairqueue.VTC, fairqueue.OneFlow)
	cfg.Queue.CapacityMode = some(r, fairqueue.Reserved, fairqueue.Shared, fairqueue.Reject)
	cfg.Queue.Levels = some(r, 0, 1, 1, 2)
	if chance(r, 25) {
		cfg.Queue.TierMode = fairqueue.Weighted
	}
	return randomConfig(r, cfg)
}

// randomConfig is base with other values for all fields that may change at run time.
func randomConfig(r *rand.Rand, base dispatch.Config) dispatch.Config {
	cfg := dispatch.DefaultConfig()
	q := &cfg.Queue
	q.Discipline, q.CapacityMode, q.TierMode, q.Levels = base.Queue.Discipline, base.Queue.CapacityMode, base.Queue.TierMode, base.Queue.Levels
	q.TotalCapacity = some(r, 6, 20, 1000, 1000)
	q.FlowCapacity = min(q.TotalCapacity, some(r, 3, 100))
	q.QueueTTL = time.Duration(some(r, 2, 30, mostWaited)) * time.Second
	q.TieBreak = some(r, fairqueue.ByArrival, fairqueue.NewcomerFirst)
	q.PromotionBudget = some[int64](r, 0, 100_000, 500_000, 1_000_000)
	q.GuaranteedTop = chance(r, 30)
	q.Priorities = chance(r, 20)
	q.Cursor = some(r, fairqueue.Stay, fairqueue.Advance)
	q.Weights = map[string]fairqueue.Weight{}
	for _, flow := range []string{"a", "b", "c", "d"} {
		if chance(r, 40) {
			q.Weights[flow] = fairqueue.Weight(some[int64](r, 500_000, 2_000_000, 4_000_000))
		}
	}
	if chance(r, 40) {
		for _, name := range strings.Fields(classNames)[:2+r.IntN(2)] {
			q.Classes = append(q.Classes, fairqueue.ClassConfig{
				Name: name, Quantum: fairqueue.Cost(some(r, 1, 2, 5, 40)), Order: some(r, fairqueue.FCFS, fairqueue.FCFS, fairqueue.WSPT, fairqueue.EDF),
			})
		}
		r.Shuffle(len(q.Classes), func(i, j int) { q.Classes[i], q.Classes[j] = q.Classes[j], q.Classes[i] })
	}
	if chance(r, 20) {
		q.Order = some(r, fairqueue.WSPT, fairqueue.EDF)
	}
	randomTiers(r, &cfg)
	cfg.Enabled = !chance(r, 4)
	cfg.EnqueueAll = !chance(r, 15)
	cfg.HoldWhenEmpty = !chance(r, 20)
	cfg.VictimOrder = some(r, dispatch.NewestFirst, dispatch.LeastCostFirst)
	if chance(r, 15) {
		cfg.ReleaseSpacing = time.Duration(some(r, 5, 50)) * time.Millisecond
	}
	randomBounds(r, &cfg)
	return cfg
}

func randomTiers(r *rand.Rand, cfg *dispatch.Config) {
	names := strings.Fields(tierNames)[:some(r, 1, 2, 2, 3, 4)]
	if chance(r, 20) {
		names = slices.DeleteFunc(slices.Clone(names), func(string) bool { return len(names) > 1 && chance(r, 30) })
	}
	if len(names) == 0 {
		names = []string{"silver"}
	}
	cfg.Queue.Tiers, cfg.Tiers = nil, nil
	for _, name := range names {
		t := fairqueue.TierConfig{Name: name, QueueSize: some(r, fairqueue.NoLimit, fairqueue.NoLimit, 8)}
		t.Weight = fairqueue.Weight(some[int64](r, 0, 700_000, 3_000_000))
		t.StarvationThreshold = time.Duration(some(r, 0, 0, 1, 3)) * time.Second
		t.QueueTimeout = time.Duration(some(r, 0, 0, 1, 10)) * time.Second
		cfg.Queue.Tiers = append(cfg.Queue.Tiers, t)
		d := dispatch.TierConfig{CanPreempt: chance(r, 25)}
		if chance(r, 15) {
			d.ReservedFloor, d.ReservedPerSlot = r.IntN(3), stock.One/stock.Micro(some(r, 3, 10))
		}
		cfg.Tiers = append(cfg.Tiers, d)
	}
}

func randomBounds(r *rand.Rand, cfg *dispatch.Config) {
	s := &cfg.Stock
	s.WatermarkPerBackend = 1 + r.IntN(4)
	switch r.IntN(4) {
	case 0: // derived
		s.PercentageDeviationForBounds = stock.One / stock.Micro(some(r, 2, 10))
	case 1: // lower = upper
		s.LowerBoundPerBackend, s.UpperBoundPerBackend = s.WatermarkPerBackend, s.WatermarkPerBackend
	default:
		s.LowerBoundPerBackend, s.UpperBoundPerBackend = r.IntN(s.WatermarkPerBackend+1), s.WatermarkPerBackend+r.IntN(3)
	}
	s.Unbounded = chance(r, 3)
	if chance(r, 25) {
		s.Tokens.Watermark = stock.Tokens(some(r, 5, 20, 100))
		if chance(r, 50) {
			s.Tokens.Lower, s.Tokens.Upper = s.Tokens.Watermark/2, s.Tokens.Watermark*3/2
		}
	}
	if cfg.Queue.Discipline == fairqueue.OneFlow {
		return
	}
	if chance(r, 20) {
		cfg.MaxInFlightPerFlow = 1 + r.IntN(4)
	}
	if chance(r, 20) {
		cfg.MaxInFlightPerFlowPerBackend = 1 + r.IntN(2)
	}
	if chance(r, 10) {
		cfg.MaxTokensInFlightPerFlow = stock.Tokens(some(r, 5, 50))
	}
	if chance(r, 10) {
		cfg.MaxTokensInFlightPerFlowPerBackend = stock.Tokens(some(r, 3, 30))
	}
}

// randomPool is a pool of n endpoints, with models or without.
func randomPool(r *rand.Rand, n int, models bool) (pool []scheduling.Endpoint) {
	for i := range n {
		e := scheduling.Endpoint{ID: scheduling.EndpointID(i), Address: address(i), Ready: !chance(r, 8)}
		if models {
			e.Models = some(r, nil, []string{"m"}, []string{"n"}, []string{"m", "n"}, []string{"m"})
		}
		if models && i == 0 {
			e.Models = []string{"m"}
		}
		if chance(r, 10) {
			e.Slots = 1 + r.IntN(3)
		}
		if chance(r, 10) {
			e.MaxInFlight = 1 + r.IntN(4)
		}
		pool = append(pool, e)
	}
	return pool
}

func address(i int) string { return fmt.Sprintf("10.0.0.%d:80", i+1) }

func randomLoad(r *rand.Rand, id int, s *scene) load {
	l := load{
		id: id, tier: some(r, strings.Fields(tierNames)...), flow: some(r, "a", "b", "c", "d", "e"),
		begins: time.Duration(r.Int64N(int64(s.length) / 2)), runs: time.Duration(some(r, 20, 100, 100, 500)) * time.Millisecond,
		cost: 1, spread: 1, factor: some(r, 1, 1, 3),
	}
	if chance(r, 60) { // tiers that there are, and few of them, so that loads meet
		l.tier = s.config.Queue.Tiers[r.IntN(min(2, len(s.config.Queue.Tiers)))].Name
	}
	if chance(r, 70) {
		l.begins = 0
	}
	l.lasts = s.length - l.begins
	if chance(r, 20) {
		l.lasts /= 2
	}
	if chance(r, 50) {
		l.path = &fairqueue.Path{Class: some(r, "", "x", "y", "z"), Strict: some(r, 0, 0, 2), Priority: some(r, 0, 0, 3)}
		if s.config.Queue.Levels > 1 {
			l.path.Under = []string{some(r, "u", "v")}
		}
	}
	if chance(r, 40) {
		l.ask.Model = some(r, "m", "n")
	}
	if chance(r, 30) {
		l.ask.Subset.Set = true
		for range 1 + r.IntN(3) {
			l.ask.Subset.Entries = append(l.ask.Subset.Entries, address(r.IntN(len(s.pool))))
		}
	}
	if chance(r, 75) {
		l.clients, l.pause = 1+r.IntN(10), time.Duration(some(r, 0, 0, 10, 200))*time.Millisecond
	} else {
		l.pause = time.Duration(some(r, 20, 100, 400)) * time.Millisecond
	}
	if chance(r, 50) {
		l.cost, l.spread, l.estimates = fairqueue.Cost(1+r.IntN(30)), some(r, 1, 1, 4, 50), some(r, exact, exact, wrong, greedy)
	}
	if chance(r, 40) {
		l.fates = fates{
			leave: r.IntN(20), abandon: r.IntN(10), slow: r.IntN(30), deadline: r.IntN(20), grow: r.IntN(60), early: r.IntN(40),
			never: r.IntN(20), move: r.IntN(10), passOn: r.IntN(5), hurried: r.IntN(50),
		}
	}
	return l
}

func randomChange(r *rand.Rand, s *scene) change {
	c := change{at: time.Duration(r.Int64N(int64(s.length)))}
	switch r.IntN(3) {
	case 0:
		cfg := randomConfig(r, s.config)
		if chance(r, 50) { // the same but for a few fields
			other := cfg
			cfg = s.config
			switch r.IntN(5) {
			case 0:
				cfg.Queue.Weights = other.Queue.Weights
			case 1:
				cfg.Queue.Classes, cfg.Queue.Cursor = other.Queue.Classes, other.Queue.Cursor
			case 2:
				cfg.Queue.Tiers, cfg.Tiers = other.Queue.Tiers, other.Tiers
			case 3:
				cfg.Stock = other.Stock
			default:
				cfg.Enabled = !cfg.Enabled
			}
		}
		c.config = &cfg
	case 1:
		_ = chance(r, 60) // without it the scenes of all seeds would be others
		c.pool = randomPool(r, 1+r.IntN(mostEndpoints), s.models)
	default:
		for range 1 + r.IntN(3) {
			held := stock.Amount{Requests: r.IntN(4), Tokens: stock.Tokens(r.IntN(20))}
			c.foreign = append(c.foreign, stock.Foreign{ID: stock.BackendID(r.IntN(len(s.pool))), Held: held})
		}
	}
	return c
}
