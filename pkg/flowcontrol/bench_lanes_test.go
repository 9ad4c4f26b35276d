package flowcontrol

import (
	"fmt"
	"slices"
	"testing"

	"github.com/go-logr/logr"

	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/stock"
)

// lots is a Placer of many endpoints of one slot each, and of lanes of some of them.
type lots struct {
	reserved []int
	lanes    map[string][]Endpoint // ascending
}

type lot string

func (l lot) Lane() string { return string(l) }

func (f *lots) held(p Placement) (n int) {
	for _, e := range f.lanes[p.Lane()] {
		n += f.reserved[e]
	}
	return n
}

func (f *lots) Place(p Placement, _ Bound, _ []Endpoint) Endpoint {
	for _, e := range f.lanes[p.Lane()] {
		if f.reserved[e] == 0 {
			f.reserved[e]++
			return e
		}
	}
	return NoEndpoint
}

func (f *lots) HasRoom(p Placement, _ Bound, _ []Endpoint) bool {
	return f.held(p) < len(f.lanes[p.Lane()])
}

func (f *lots) PlaceAt(_ Placement, e Endpoint) { f.reserved[e]++ }

func (f *lots) Release(e Endpoint) { f.reserved[e]-- }

func (f *lots) HasReady(Placement, []Endpoint) bool { return true }

func (f *lots) CanServe(p Placement, e Endpoint) bool {
	_, ok := slices.BinarySearch(f.lanes[p.Lane()], e)
	return ok
}

func (f *lots) CanTakeOver(p Placement, e Endpoint) bool {
	return f.CanServe(p, e) && f.held(p)-1 < len(f.lanes[p.Lane()])
}

func (f *lots) Reach(p Placement, some []Endpoint) ([]Endpoint, bool) {
	return append(some, f.lanes[p.Lane()]...), false
}

// BenchmarkWaitersElsewhere is one request's life in a lane of its own, on a full fleet, while a high tier waits in
// others that have nobody to preempt: its cost must not depend on how many they are.
func BenchmarkWaitersElsewhere(b *testing.B) {
	for _, waiting := range []int{0, 50, 1000} {
		b.Run(fmt.Sprintf("lanes=%d", waiting), func(b *testing.B) {
			f := &lots{reserved: make([]int, 2000), lanes: map[string][]Endpoint{}}
			lane := func(name string, first, n int) lot {
				for i := range n {
					f.lanes[name] = append(f.lanes[name], Endpoint(first+i))
				}
				return lot(name)
			}
			cfg := DefaultConfig()
			smg(1)(&cfg)
			cfg.Queue.Tiers[system].QueueSize, cfg.Queue.TotalCapacity, cfg.Queue.FlowCapacity = -1, 10_000, 10_000
			c, err := New(cfg, f, logr.Discard())
			if err != nil {
				b.Fatal(err)
			}
			c.SetBackends(make([]stock.Backend, 2000), nil)
			s := steps{c, b}
			for m := range 50 { // half of 100 models of 20 endpoints: nobody there can be preempted
				p := lane(fmt.Sprint("streaming-", m), 20*m, 20)
				for range 20 {
					if err := (*Lease)(s.offers(&Request{Flow: "s", Tier: bulk, Placement: p}, dispatch.StageSent)).OnFirstByte(); err != nil {
						b.Fatal(err)
					}
				}
			}
			var leases []*waiter
			for m := range 50 { // and the other half, where anybody can
				p := lane(fmt.Sprint("bulk-", m), 1000+20*m, 20)
				for range 20 {
					leases = append(leases, s.offers(&Request{Flow: "b", Tier: bulk, Placement: p}, dispatch.StageSent))
				}
			}
			for w := range waiting {
				p := lot(fmt.Sprint("streaming-", w))
				if waiting > 50 { // subsets
					p = lane(fmt.Sprint("subset-", w), w%980, 20)
				}
				s.offers(&Request{Flow: "w", Tier: system, Placement: p}, dispatch.StageWaiting)
			}
			last := leases[len(leases)-1]
			b.ReportAllocs()
			for b.Loop() {
				last.complete()
				last = s.offers(&Request{Flow: "b", Tier: bulk, Placement: lot("bulk-49")}, dispatch.StageSent)
			}
		})
	}
}
