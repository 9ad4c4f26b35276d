package dispatch_test

import (
	"slices"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/modelsim/engine"
	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/scheduling"
	"github.com/weir-epp/weir/pkg/stock"
)

// The slots that an engine states go before those that its endpoint's source states, and these before what is learned. Without
// auto, neither counts: the number of the configuration is kept.
func TestStatedSlots(t *testing.T) {
	p := newPlant(t, 1, 0, engine.Reference(), engine.Reference())
	m := p.weirs[0].m
	want := func(what string, bounds ...int) {
		t.Helper()
		if got := []int{p.bound(0, 0), p.bound(0, 1)}; !slices.Equal(got, bounds) {
			t.Errorf("%s: bounds %v, want %v", what, got, bounds)
		}
	}
	source := func(slots int32) {
		m.SetBackends(p.now, []stock.Backend{{ID: 0, Slots: slots}, {ID: 1}}, nil)
	}
	states := func(e dispatch.Endpoint, slots int32) {
		m.SetSignals(p.now, e, scheduling.Signals{Known: true, Slots: slots})
	}
	source(8)
	want("the source states 8", 8, 64)
	states(0, 24)
	states(1, 16)
	want("the engines state more", 24, 16)
	source(12)
	want("the source states 12", 24, 16)
	m.SetSignals(p.now, 0, scheduling.Signals{})
	want("nothing is known for a moment", 24, 16)
	states(0, 0)
	states(1, 0)
	want("the engines state nothing any more", 12, 64)
	states(0, 24)
	auto := m.Config()
	fixed := auto
	fixed.Stock.Follow, fixed.Stock.SlotsPerBackend = false, 48
	if err := m.Configure(p.now, fixed); err != nil {
		t.Fatal(err)
	}
	want("48 are configured", 12, 48)
	states(1, 24)
	want("an engine states others", 12, 48)
	stated := fixed
	stated.Stock.Stated = true
	if err := m.Configure(p.now, stated); err != nil {
		t.Fatal(err)
	}
	want("statements go before 48", 12, 48)
	states(0, 24)
	states(1, 16)
	want("both state theirs", 24, 16)
	states(1, 0)
	want("one states nothing any more", 24, 48)
	source(0)
	states(0, 0)
	want("nobody states anything", 48, 48)
	for range 50 {
		p.now = p.now.Add(time.Second)
		m.SetSignals(p.now, 1, scheduling.Signals{Known: true, Running: 60, Waiting: 9})
	}
	want("nothing is learned", 48, 48)
	states(1, 16)
	if err := m.Configure(p.now, auto); err != nil {
		t.Fatal(err)
	}
	want("auto: what is stated stays", 64, 16)
	if err := m.Configure(p.now, stated); err != nil {
		t.Fatal(err)
	}
	want("and without auto", 48, 16)
	states(1, 0)
	source(12)
	if err := m.Configure(p.now, fixed); err != nil {
		t.Fatal(err)
	}
	if err := m.Configure(p.now, auto); err != nil {
		t.Fatal(err)
	}
	want("auto again", 12, 64)
	states(0, 2_000_000_000)
	states(1, 24)
	want("too many", stock.MaxPerBackend, 24)
	source(0)
	states(0, 0)
	want("the source states none", 64, 24)
}
