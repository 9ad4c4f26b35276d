package simulate

import (
	"math"
	"testing"

	"github.com/weir-epp/weir/internal/config"
	"github.com/weir-epp/weir/pkg/scheduling"
)

// Without a queue, and with first tokens, Weir's mean time to first token is at most half above that of any other
// router's formula. As it is shipped, without first tokens, the profile recommended is less than twice as slow as any,
// except for prompts of very different lengths: there first tokens tell most. The page has the same for Mooncake's
// trace.
func TestNoRouterIsMuchBetter(t *testing.T) {
	without, err := config.Load(config.Source{Text: []byte(`profile: recommended
requestQueueController: { enabled: false, slotsPerBackend: 64 }
scheduling: { affinity: off }
`)})
	if err != nil {
		t.Fatal(err)
	}
	recommended, err := config.Load(config.Source{Profile: "recommended"})
	if err != nil {
		t.Fatal(err)
	}
	for workload, most := range map[string]float64{"hot": 2, "bursts": 2, "zipf": 2, "documents": 2.5} {
		t.Run(workload, func(t *testing.T) {
			t.Parallel()
			w, _ := shippedInput(t, workload, "prefix-unbounded")
			mean := func(d config.Document, p *Peer, firstTokens bool) float64 {
				r, err := Run(&Options{Config: d, Peer: p, Engines: w.Pool(), Seed: 1, FirstTokens: firstTokens}, w.Requests(1))
				if err != nil {
					t.Fatal(err)
				}
				if r.All.Answered != r.All.Requests {
					t.Errorf("%d of %d answered", r.All.Answered, r.All.Requests)
				}
				return r.All.TTFT.Mean
			}
			best, by := math.Inf(1), ""
			for i := range Peers {
				if ttft := mean(without, &Peers[i], true); ttft < best {
					best, by = ttft, Peers[i].Name
				}
			}
			gated, shipped := shippedWith(t, workload, "prefix-unbounded", true).All.TTFT.Mean, mean(recommended, nil, false)
			t.Logf("%s %.3f s, Weir %.3f s with first tokens, %.3f s as shipped", by, best, gated, shipped)
			if gated > 1.5*best || shipped > most*best {
				t.Errorf("%s has %.3f s, Weir %.3f s with first tokens and %.3f s as shipped", by, best, gated, shipped)
			}
		})
	}
}

// Another router sends a request by its formula, and its counts are 0 once all requests have ended.
func TestPeersCount(t *testing.T) {
	w := readWorkload(t, "groups")
	for i := range Peers {
		s, err := newSimulation(&Options{Config: readConfig(t, "open"), Peer: &Peers[i], Engines: w.Pool(), Seed: 1}, w.Requests(1))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.run(); err != nil {
			t.Fatal(err)
		}
		placed := int64(0)
		for e, at := range s.peers.at {
			if at.requests != 0 || at.unread != 0 || at.held != 0 {
				t.Errorf("%s: engine %d has %+v at the end", Peers[i].Name, e, at)
			}
			placed += at.placed
		}
		if placed == 0 {
			t.Errorf("%s: nothing was counted", Peers[i].Name)
		}
	}
	var p peers
	p.at = []peerAt{{requests: 3, unread: 100, held: 900}, {requests: 1, unread: 5000, held: 5000}, {requests: 70, held: 100}}
	for _, c := range []struct {
		name string
		want int
	}{{"least requests", 1}, {"SMG, cache_aware", 1}, {"LMetric", 1}, {"Dynamo, KV router", 2}} {
		for i := range Peers {
			if Peers[i].Name != c.name {
				continue
			}
			if got := Peers[i].choose(&p, 1000, &scheduling.Ratings{Prompt: 1000}); got != c.want {
				t.Errorf("%s chooses %d, want %d", c.name, got, c.want)
			}
		}
	}
}
