package extproc

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"

	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/flowcontrol"
	"github.com/weir-epp/weir/pkg/request"
	"github.com/weir-epp/weir/pkg/scheduling"
	"github.com/weir-epp/weir/pkg/stock"
)

// onePlace is a Placer of one endpoint that is always ready. Its other methods are not called.
type onePlace struct{ flowcontrol.Placer }

func (onePlace) Place(flowcontrol.Placement, scheduling.Bound, *scheduling.EndpointSet) scheduling.Reservation {
	return scheduling.Reserved(0)
}

func (onePlace) HasRoom(flowcontrol.Placement, scheduling.Bound, *scheduling.EndpointSet) bool {
	return true
}

func (onePlace) PlaceAt(_ flowcontrol.Placement, e flowcontrol.Endpoint) scheduling.Reservation {
	return scheduling.Reserved(e)
}

func (onePlace) Release(any, *scheduling.Reservation)                             {}
func (onePlace) HasReady(flowcontrol.Placement, *scheduling.EndpointSet) bool     { return true }
func (onePlace) Meets(flowcontrol.Placement, *scheduling.EndpointSet) bool        { return false }
func (onePlace) CanServe(flowcontrol.Placement, flowcontrol.Endpoint) bool        { return true }
func (onePlace) CanTakeOver(_ flowcontrol.Placement, _ flowcontrol.Endpoint) bool { return true }

func (onePlace) Known(flowcontrol.Placement) int                               { return 1 }
func (onePlace) Busy(flowcontrol.Placement, int) bool                          { return false }
func (onePlace) SetBusyRules([]scheduling.BusyRule)                            {}
func (onePlace) PromptRead(*scheduling.Reservation)                            {}
func (onePlace) TakeTurned(some []flowcontrol.Endpoint) []flowcontrol.Endpoint { return some }

func (onePlace) Lane(flowcontrol.Placement) string     { return "" }
func (onePlace) AddTokens(flowcontrol.Endpoint, int64) {}
func (onePlace) Regret(flowcontrol.Placement, scheduling.Bound, *scheduling.EndpointSet) (int64, bool) {
	return 0, true
}
func (onePlace) TakesTokens(flowcontrol.Endpoint, int64) bool           { return true }
func (onePlace) Times() bool                                            { return false }
func (onePlace) Completed(flowcontrol.Endpoint, time.Duration, int64)   {}
func (onePlace) TakeRegrouping() *scheduling.Regrouping                 { return nil }
func (onePlace) SetBounds(flowcontrol.Endpoint, int64, int64) bool      { return true }
func (onePlace) SetTokenBounds(flowcontrol.Endpoint, int64, int64) bool { return true }
func (onePlace) TakeChanges(some []flowcontrol.Endpoint) ([]flowcontrol.Endpoint, bool) {
	return some, true
}

// preemptive is a bench with the real controller: one slot and two tiers, of which the higher may preempt.
func preemptive(t *testing.T) (*testbench, *flowcontrol.RequestQueueController) {
	t.Helper()
	cfg := flowcontrol.DefaultConfig()
	cfg.EnqueueAll = true
	cfg.Stock.SlotsPerBackend = 1
	cfg.Queue.Tiers = []fairqueue.TierConfig{{Name: "high", QueueSize: 10}, {Name: "low", QueueSize: 10}}
	cfg.Tiers = []dispatch.TierConfig{{CanPreempt: true}, {}}
	c, err := flowcontrol.New(cfg, onePlace{}, logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	c.SetBackends(make([]stock.Backend, 1), nil, nil)
	b := newBench(t, func(c *Config) {
		c.Tiers = []request.Tier{{Name: "high"}, {Name: "low"}}
		c.Criticality = request.Criticality{Header: "x-class", Default: "low"}
	})
	b.server.controller = Controlled(c)
	return b, c
}

// TestFirstTokenRacesARealPreemption lets a token reach the gate at the instant of a request of a higher tier. One of
// them wins, and the other one learns of it.
func TestFirstTokenRacesARealPreemption(t *testing.T) {
	tokens, preemptions := 0, 0
	for range 200 {
		synctest.Test(t, func(t *testing.T) {
			b, c := preemptive(t)
			b.seeGate()
			main, id := b.granted()
			g := b.openGate()
			g.arrives(id, sse())
			synctest.Wait()
			granted := make(chan *flowcontrol.Lease, 1)
			go func() {
				time.Sleep(time.Nanosecond)
				l, err := c.TryEnqueue(t.Context(), &flowcontrol.Request{Flow: "urgent", Tier: 0, Placement: b.picker})
				if err != nil {
					t.Error(err)
				}
				granted <- l
			}()
			go func() {
				time.Sleep(time.Nanosecond)
				g.say(responseBodyOf("data: x\n\n", false))
			}()
			time.Sleep(2 * time.Nanosecond)
			atGate, atMain := g.heard(), main.heard()
			switch {
			case atGate == "response-headers; response-body" && atMain == "":
				tokens++
				select {
				case <-granted:
					t.Error("the urgent one has a slot that is taken")
				default:
				}
				main.end()
			case atGate == "" && atMain == "immediate 503 preempted":
				preemptions++
				g.end()
				main.end()
			default:
				t.Errorf("the gate says %q, the main stream %q", atGate, atMain)
			}
			l := <-granted
			if s := c.State(); s.Stock != 1 {
				t.Errorf("stock %d while the urgent one runs", s.Stock)
			}
			l.OnRequestComplete(flowcontrol.Completion{Status: 200})
			if s := c.State(); s.Stock != 0 || s.Queued != 0 || b.server.links.len() != 0 {
				t.Errorf("at the end %+v, %d links", s, b.server.links.len())
			}
		})
	}
	t.Logf("the token won %d times, the preemption %d times", tokens, preemptions)
}
