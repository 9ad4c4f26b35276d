package structures

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/heap"
)

// mix is what a request of the controller does to the order of a lane's flows, with vtc:
//
//   - a grant takes the flow with the least tag, and charges it an estimate: its tag grows;
//   - three of four flows have more waiters then, and stay; the fourth leaves, and comes back with its next arrival, lifted to
//     the virtual time;
//   - the end of a request corrects the tag of a flow that went shortly before;
//   - one of ten requests is cancelled or expires while it waits, which is one of ten times the head of its flow.
//
// All others only join or leave their flow's line, which is in no order that is compared here.
type mix struct {
	order
	rng   *rand.Rand
	costs func(*rand.Rand) uint64
	flows []*flow
	idle  []*flow
	ended []*flow // of the requests in flight, the oldest first
	seq   uint64
	log   func(*flow)
}

const inFlight = 64

// evenCosts are exponential, of a mean of 1,000. skewedCosts span four orders of magnitude, as those of real tenants do
// (2DFQ, SIGCOMM 2016). equalCosts are all the same.
func evenCosts(r *rand.Rand) uint64   { return 1 + uint64(r.ExpFloat64()*1000) }
func skewedCosts(r *rand.Rand) uint64 { return 10 * []uint64{1, 10, 100, 1000, 10_000}[r.IntN(5)] }
func equalCosts(*rand.Rand) uint64    { return 1000 }

func newMix(o order, flows int, costs func(*rand.Rand) uint64) *mix {
	m := &mix{order: o, rng: rand.New(rand.NewPCG(1, 2)), costs: costs, log: func(*flow) {}}
	for i := range flows {
		f := newFlow(uint64(1 + i%4))
		f.key = m.key(m.increment(f))
		m.flows = append(m.flows, f)
		m.push(f)
	}
	return m
}

func (m *mix) increment(f *flow) uint64 { return m.costs(m.rng) << 20 / f.weight }

func (m *mix) key(tag uint64) heap.Key {
	m.seq++
	return heap.Key{Value: tag, Seq: m.seq}
}

// request is what one request does, in the mean.
func (m *mix) request() {
	f := m.min()
	m.log(f)
	now := f.key.Value
	if m.rng.IntN(4) == 0 && len(m.flows)-len(m.idle) > 1 {
		m.remove(f)
		f.idle = true
		m.idle = append(m.idle, f)
	} else {
		m.fix(f, m.key(now+m.increment(f)))
	}
	if len(m.idle) > 0 && m.rng.IntN(4) == 0 || len(m.idle) > len(m.flows)/4 {
		back := m.idle[0]
		m.idle = m.idle[1:]
		back.idle = false
		back.key = m.key(max(back.key.Value, now))
		m.push(back)
	}
	m.ended = append(m.ended, f)
	if len(m.ended) > inFlight {
		f, m.ended = m.ended[0], m.ended[1:]
		if wrong := m.increment(f) / 4; !f.idle {
			m.fix(f, m.key(max(now, f.key.Value-min(wrong, f.key.Value))))
		}
	}
	if m.rng.IntN(100) == 0 {
		if f := m.flows[m.rng.IntN(len(m.flows))]; !f.idle {
			m.fix(f, m.key(f.key.Value+1))
		}
	}
}

var exact = []struct {
	name string
	make func() order
}{
	{"4-ary heap", func() order { return &four{} }},
	{"binary heap", func() order { return &binary{} }},
	{"calendar", func() order { return newCalendar() }},
}

// All exact structures let the flows go in the same order.
func TestSameOrder(t *testing.T) {
	for _, costs := range []func(*rand.Rand) uint64{evenCosts, skewedCosts, equalCosts} {
		var want []uint64
		for _, s := range exact {
			var got []uint64
			m := newMix(s.make(), 200, costs)
			m.log = func(f *flow) { got = append(got, f.key.Seq) }
			for range 20_000 {
				m.request()
			}
			if want == nil {
				want = got
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s has another order", s.name)
			}
		}
	}
}

// processorTime returns the processor time of this process, which says more than time on a machine that others use.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// BenchmarkMix is the mix by one goroutine. "steps" is the most flows that one operation of a calendar looked at, which the
// controller would do under its lock.
func BenchmarkMix(b *testing.B) {
	for _, c := range []struct {
		name  string
		costs func(*rand.Rand) uint64
	}{{"even", evenCosts}, {"skewed", skewedCosts}, {"equal", equalCosts}} {
		for _, n := range []int{16, 256, 5000, 100_000} {
			if c.name != "even" && n > 5000 {
				continue // a calendar takes minutes
			}
			for _, s := range exact {
				b.Run(fmt.Sprintf("%s/flows=%d/%s", c.name, n, s.name), func(b *testing.B) {
					m := newMix(s.make(), n, c.costs)
					b.ResetTimer()
					before := processorTime(b)
					for range b.N {
						m.request()
					}
					b.ReportMetric(float64(processorTime(b)-before)/float64(b.N), "processor-ns/op")
					if calendar, ok := m.order.(*calendar); ok {
						b.ReportMetric(float64(calendar.most), "steps")
					}
				})
			}
		}
	}
}

// contended is a grant and a correction by each of several goroutines.
type contended interface {
	serve(next func(*flow) heap.Key) *flow
	correct(f *flow, to func(*flow) heap.Key)
}

// locked is a heap behind one lock, as the controller has it.
type locked struct {
	sync.Mutex
	four
}

func (l *locked) serve(next func(*flow) heap.Key) *flow {
	l.Lock()
	defer l.Unlock()
	f := l.min()
	l.fix(f, next(f))
	return f
}

func (l *locked) correct(f *flow, to func(*flow) heap.Key) {
	l.Lock()
	defer l.Unlock()
	l.fix(f, to(f))
}

// rest is the rest of a decision: stock, caps, placement and accounts, which are one for the whole pool whatever keeps the order.
type rest struct {
	sync.Mutex
	words [64]uint64
}

func (r *rest) decide(rounds int) {
	r.Lock()
	defer r.Unlock()
	for i := range rounds {
		r.words[i%len(r.words)] += r.words[(i*7)%len(r.words)] ^ uint64(i)
	}
}

// BenchmarkContended is a grant and a correction by as many goroutines as there are processors, four times: the order alone,
// and with the rest of a decision (about a microsecond), which needs a lock anyway.
func BenchmarkContended(b *testing.B) {
	const flows = 5000
	for _, whole := range []bool{false, true} {
		name := "order alone"
		if whole {
			name = "whole decision"
		}
		for _, s := range []struct {
			name string
			make func() (contended, func(*flow, int))
		}{
			{"one lock", func() (contended, func(*flow, int)) {
				l := &locked{}
				return l, func(f *flow, _ int) { l.push(f) }
			}},
			{"8 shards, exact", func() (contended, func(*flow, int)) { s := newSharded(8, false); return s, s.add }},
			{"8 shards, approximate", func() (contended, func(*flow, int)) { s := newSharded(8, true); return s, s.add }},
			{"one CAS, no order", func() (contended, func(*flow, int)) { c := &swapped{}; return c, c.add }},
		} {
			b.Run(name+"/"+s.name, func(b *testing.B) {
				of, add := s.make()
				for i := range flows {
					f := newFlow(uint64(1 + i%4))
					f.key = heap.Key{Value: uint64(i) << 20, Seq: uint64(i)}
					add(f, i)
				}
				var others rest
				var seq atomic.Uint64
				b.SetParallelism(4)
				b.ResetTimer()
				before := processorTime(b)
				b.RunParallel(func(pb *testing.PB) {
					rng := rand.New(rand.NewPCG(seq.Add(1), 1))
					for pb.Next() {
						cost := evenCosts(rng) << 20
						f := of.serve(func(f *flow) heap.Key { return heap.Key{Value: f.key.Value + cost/f.weight, Seq: f.key.Seq} })
						if whole {
							others.decide(600)
						}
						of.correct(f, func(f *flow) heap.Key { return heap.Key{Value: f.key.Value + 1, Seq: f.key.Seq} })
					}
				})
				b.ReportMetric(float64(processorTime(b)-before)/float64(b.N), "processor-ns/op")
			})
		}
	}
}

// swapped is the least that anything without a lock does: it exchanges one word for each operation, and keeps no order.
type swapped struct {
	flows []*flow
	word  atomic.Uint64
}

func (s *swapped) add(f *flow, _ int) { s.flows = append(s.flows, f) }

func (s *swapped) swap() uint64 {
	for {
		if n := s.word.Load(); s.word.CompareAndSwap(n, n+1) {
			return n
		}
	}
}

func (s *swapped) serve(func(*flow) heap.Key) *flow { return s.flows[s.swap()%uint64(len(s.flows))] }

func (s *swapped) correct(*flow, func(*flow) heap.Key) { s.swap() }

// TestApproximateOrder shows by how many flows a MultiQueue errs, with nobody beside it: others with lesser tags wait on.
func TestApproximateOrder(t *testing.T) {
	const flows, grants = 1000, 10_000
	s := newSharded(8, true)
	var all []*flow
	for i := range flows {
		f := newFlow(1)
		f.key = heap.Key{Value: uint64(i) << 20, Seq: uint64(i)}
		s.add(f, i)
		all = append(all, f)
	}
	before, most := 0, 0
	for range grants {
		var tag uint64
		s.serve(func(f *flow) heap.Key {
			tag = f.key.Value
			return heap.Key{Value: tag + flows<<20, Seq: f.key.Seq}
		})
		passed := 0
		for _, f := range all {
			if f.key.Value < tag {
				passed++
			}
		}
		before += passed
		most = max(most, passed)
	}
	t.Logf("a grant passes %.1f flows with lesser tags in the mean, %d at most", float64(before)/grants, most)
	if before == 0 {
		t.Error("the order is exact")
	}
}
