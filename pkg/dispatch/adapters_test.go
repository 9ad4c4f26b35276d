package dispatch_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/modelsim/engine"
	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/scheduling"
)

// loras runs clients whose requests need one of 20 adapters, on four engines with room for four adapters each. Loading
// one takes as long as 4,000 prompt tokens. known means that Weir knows that these models are adapters.
func loras(t *testing.T, clients, slots int, order fairqueue.Order, known bool) (p *plant, loads uint64, ends map[string]int) {
	cfg := engine.Reference()
	cfg.Adapters, cfg.AdapterLoad = 4, 4000*cfg.Step.PerToken
	p = newPlant(t, 1, slots, cfg, cfg, cfg, cfg)
	weir := p.weirs[0]
	c := weir.m.Config()
	c.Queue.Order = order
	if err := weir.m.Configure(p.now, c); err != nil {
		t.Fatal(err)
	}
	for _, u := range p.engines {
		u.adapters = &scheduling.AdapterState{Places: 4}
	}
	p.adapter = func(lot *rand.Rand) scheduling.Ask {
		return scheduling.Ask{Model: fmt.Sprint("adapter-", lot.IntN(20)), Adapter: known}
	}
	ends = map[string]int{}
	p.ends = func(v *visit) { ends[v.adapter]++ }
	for i := range 4 {
		p.clients(weir, fmt.Sprint("flow", i), clients/4, 2*time.Minute)
	}
	p.run(3 * time.Minute)
	for i, u := range p.engines {
		loads += u.Load().AdapterLoads
		if n := weir.board.Stock(scheduling.EndpointID(i)); n != 0 || len(u.visits) != 0 {
			t.Errorf("at the end engine %d has %d requests", i, n)
		}
	}
	return p, loads, ends
}

// If Weir knows which models are adapters, engines load adapters less than half as often, and more requests are
// answered. No adapter starves, although there are more adapters than places. No request takes more than twice the
// longest time without this knowledge.
func TestAdaptersStayWhereTheyAre(t *testing.T) {
	for _, c := range []struct {
		clients, slots int
		order          fairqueue.Order
	}{{100, 64, fairqueue.FCFS}, {200, 64, fairqueue.Locality}, {200, 16, fairqueue.Locality}} {
		name := fmt.Sprintf("%d clients, %d slots", c.clients, c.slots)
		before, loadsBefore, _ := loras(t, c.clients, c.slots, c.order, false)
		after, loads, ends := loras(t, c.clients, c.slots, c.order, true)
		t.Logf("%s: %d loads instead of %d, %d tokens instead of %d, the longest request %v instead of %v", name, loads, loadsBefore,
			after.tokens, before.tokens, after.longest, before.longest)
		if 2*loads > loadsBefore || 3*after.tokens < 4*before.tokens || after.longest > 2*before.longest {
			t.Error(name, "gains too little")
		}
		least, most := 1<<30, 0
		for i := range 20 {
			n := ends[fmt.Sprint("adapter-", i)]
			least, most = min(least, n), max(most, n)
		}
		if least < most/2 {
			t.Errorf("%s: an adapter had %d requests answered, another one %d", name, least, most)
		}
	}
}
