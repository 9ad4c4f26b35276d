package dispatch

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/placement"
	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/scheduling"
	"github.com/weir-epp/weir/pkg/stock"
)

// timed records the machine's reports of completed requests.
type timed struct {
	placement.Placer
	wants bool
	told  []string
}

func (p *timed) Times() bool { return p.wants }

func (p *timed) Completed(e Endpoint, took time.Duration, cost int64) {
	p.told = append(p.told, fmt.Sprint(e, " ", took, " ", cost))
}

// A placer that asks for times gets each good answer's time since its request went to the answering engine, without the
// wait, and its actual cost. Failures, unknown answers and leases without a status do not count, with circuits and
// without.
func TestPlacersAreToldTimes(t *testing.T) {
	for _, circuits := range []bool{false, true} {
		for _, wants := range []bool{true, false} {
			s, err := scheduling.New(scheduling.DefaultConfig())
			if err != nil {
				t.Fatal(err)
			}
			board := scheduling.NewBoard(s, nil)
			snapshot := scheduling.NewSnapshot(1, []scheduling.Endpoint{{ID: 0, Address: "10.0.0.1:80", Ready: true}, {ID: 1, Address: "10.0.0.2:80", Ready: true}})
			board.SetSnapshot(snapshot)
			p := &timed{Placer: placement.On(board), wants: wants}
			cfg := DefaultConfig()
			cfg.EnqueueAll, cfg.Circuits = true, circuits
			cfg.Stock.WatermarkPerBackend, cfg.Stock.LowerBoundPerBackend, cfg.Stock.UpperBoundPerBackend = 1, 1, 1
			m, err := New(cfg, p, rand.New(rand.NewPCG(1, 2)))
			if err != nil {
				t.Fatal(err)
			}
			now := time.Unix(1_000_000, 0)
			at := func(seconds int) time.Time { return now.Add(time.Duration(seconds) * time.Second) }
			m.SetBackends(now, []stock.Backend{{ID: 0}, {ID: 1}}, nil)
			arrive := func(seconds int) *Waiter {
				q, err := s.Prepare(snapshot, scheduling.Ask{})
				if err != nil {
					t.Fatal(err)
				}
				w := new(Waiter)
				m.Arrive(at(seconds), w, Arrival{Flow: "f", Placement: q})
				return w
			}
			ok := Answer{Status: 200}
			first, second, waits := arrive(0), arrive(0), arrive(1)
			m.Answered(at(5), first.Lease(), 700, ok) // its place goes to the one that waits
			for _, w := range m.Verdicts() {
				m.Told(w)
			}
			if waits.Stage() != StageSent {
				t.Fatal("it still waits")
			}
			m.Answered(at(7), second.Lease(), 0, Answer{Status: 503})
			m.Answered(at(8), waits.Lease(), fairqueue.UnknownCost, ok)
			third := arrive(60)
			other := 1 - third.Lease().Endpoint()
			m.ServedElsewhere(at(62), third.Lease(), other, 200)
			m.Answered(at(65), third.Lease(), 10, ok)
			m.Complete(at(70), arrive(66).Lease(), 1)
			var want []string
			if wants {
				want = []string{"0 5s 700", "0 3s 0", fmt.Sprint(other, " 3s 10")}
			}
			if fmt.Sprint(p.told) != fmt.Sprint(want) {
				t.Errorf("circuits %t: told %q, want %q", circuits, p.told, want)
			}
			if m.Judges() != (circuits || wants) {
				t.Errorf("circuits %t, times %t: answers are asked for: %t", circuits, wants, m.Judges())
			}
			before := arrive(70)
			p.wants = !wants // as after a reload of the policy
			if err := m.Configure(at(80), cfg); err != nil {
				t.Fatal(err)
			}
			p.told = nil
			m.Answered(at(90), before.Lease(), 1, ok)
			if known := !wants && circuits; len(p.told) > 0 != known {
				t.Errorf("circuits %t, times %t: of one that was sent before it is told %q", circuits, wants, p.told)
			}
			if m.Judges() != (circuits || !wants) {
				t.Errorf("circuits %t, times %t after a reload: answers are asked for: %t", circuits, !wants, m.Judges())
			}
		}
	}
}
