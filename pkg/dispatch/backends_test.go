package dispatch

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/weir-epp/weir/pkg/stock"
)

// Whatever list of backends comes after whatever other one, the accounts are those of who has seen no other.
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
				list = append(list, stock.Backend{ID: id, Slots: r.IntN(2) * 7})
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
			list[i].Slots = r.IntN(20)
		}
		m.SetBackends(now, list)
		fresh := machine()
		fresh.SetBackends(now, list)
		if got, want := m.State(), fresh.State(); got != want {
			t.Fatalf("%+v, want %+v", got, want)
		}
	}
}
