package dispatch

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/placement"
	"github.com/weir-epp/weir/pkg/scheduling"
	"github.com/weir-epp/weir/pkg/stock"
)

// After any sequence of backend lists, the accounts equal those of a machine that has seen only the last list.
func TestSetBackendsFromAnyToAny(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	now := time.Unix(1_000_000, 0)
	machine := func() *Machine {
		m, err := New(DefaultConfig(), &fleet{scene: &scene{}}, r)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	random := func() (list []stock.Backend) {
		for id := range stock.BackendID(200) {
			if r.IntN(10) > 0 {
				list = append(list, stock.Backend{ID: id, Slots: r.Int32N(2) * 7})
			}
		}
		return list
	}
	list := random()
	m := machine()
	for range 2000 {
		list = slices.Clone(list)
		switch i := r.IntN(len(list) + 1); {
		case r.IntN(50) == 0:
			list = random()
		case r.IntN(50) == 0:
			r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		case r.IntN(3) == 0:
			list = slices.Insert(list, i, stock.Backend{ID: stock.BackendID(r.IntN(250)), Slots: 5}) // maybe out of order, or twice
		case i == len(list):
			list = nil
		case r.IntN(2) == 0:
			list = slices.Delete(list, i, i+1)
		default:
			list[i].Slots = r.Int32N(20)
		}
		m.SetBackends(now, list, nil)
		fresh := machine()
		fresh.SetBackends(now, list, nil)
		if got, want := m.State(), fresh.State(); got != want {
			t.Fatalf("%+v, want %+v", got, want)
		}
	}
}

// The board gets each ready endpoint's bounds as soon as the ledger has them: for new backends, changed ones, many at
// once, and with another configuration.
func TestTheBoardIsToldTheBounds(t *testing.T) {
	s, err := scheduling.New(scheduling.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	board := scheduling.NewBoard(s, nil)
	cfg := DefaultConfig()
	m, err := New(cfg, placement.On(board), rand.New(rand.NewPCG(1, 2)))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1_000_000, 0)
	set := func(slots ...int) { // below 0: not ready
		var pool []scheduling.Endpoint
		var ready []stock.Backend
		for i, n := range slots {
			pool = append(pool, scheduling.Endpoint{ID: Endpoint(i), Address: fmt.Sprintf("10.0.0.%d:80", i+1), Ready: n >= 0})
			if n >= 0 {
				ready = append(ready, stock.Backend{ID: stock.BackendID(i), Slots: int32(n)})
			}
		}
		board.SetSnapshot(scheduling.NewSnapshot(1, pool))
		m.SetBackends(now, ready, nil)
	}
	want := func(bounds ...[2]int64) {
		t.Helper()
		for i, share := range board.Shares(nil) {
			if got := [2]int64{share.LowerBound, share.UpperBound}; got != bounds[i] {
				t.Errorf("endpoint %d has bounds %d, want %d", i, got, bounds[i])
			}
		}
	}
	own, seven, nine, none := [2]int64{1_800_000, 2_200_000}, [2]int64{7_000_000, 7_000_000}, [2]int64{9_000_000, 9_000_000}, [2]int64{}
	set(0, 7, -1)
	want(own, seven, none)
	set(0, 9, 0)
	want(own, nine, own)
	set(-1, 9, 0)
	want(none, nine, own)
	perBackend(&cfg, 3, 4)
	if err := m.Configure(now, cfg); err != nil {
		t.Fatal(err)
	}
	want(none, nine, [2]int64{3_000_000, 4_000_000})
	set(0, 9, 0)
	want([2]int64{3_000_000, 4_000_000}, nine, [2]int64{3_000_000, 4_000_000})
	many := make([]int, 200) // at once
	many[150] = 7
	set(many...)
	if got := board.Shares(nil)[150]; got.UpperBound != 7_000_000 {
		t.Errorf("%+v", got)
	}
}

// The equal beginnings and ends of two lists are found for all lengths, and for a difference at any place in a block.
func TestEqualBackends(t *testing.T) {
	whole := make([]stock.Backend, 3*block)
	for i := range whole {
		whole[i].ID = stock.BackendID(i)
	}
	for n := range whole {
		other := slices.Clone(whole)
		other[n].MaxTokens = 1
		if got := equalAtStart(whole, other); got != n {
			t.Errorf("%d are equal at the start, want %d", got, n)
		}
		if got, want := equalAtEnd(whole, other), len(whole)-1-n; got != want {
			t.Errorf("%d are equal at the end, want %d", got, want)
		}
		if got := equalAtStart(whole, whole[:n]); got != n {
			t.Errorf("%d of %d are equal at the start", got, n)
		}
		if got := equalAtEnd(whole, whole[n:]); got != len(whole)-n {
			t.Errorf("%d of %d are equal at the end", got, len(whole)-n)
		}
	}
}
