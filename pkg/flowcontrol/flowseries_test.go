package flowcontrol

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-epp/weir/pkg/fairqueue"
)

// A sum over no series is not a number, and an autoscaler does nothing or the wrong thing with it. So both series
// exist, at 0, before the first request.
func TestQueueAndStockExistFromTheStart(t *testing.T) {
	inBubble(t, ready(1), nil, func(b *bench) {
		for _, name := range []string{"weir_queue_length", "weir_stock_level"} {
			series := b.scrape(name)
			if len(series) == 0 {
				t.Errorf("there is no %s", name)
			}
			for _, m := range series {
				if m.GetGauge().GetValue() != 0 {
					t.Errorf("%s is %v", name, m)
				}
			}
		}
	})
}

// A tenant that waits in two classes is entitled to the sum of its shares there: of a quarter it has all, of three quarters
// half.
func TestEntitledShareOfATier(t *testing.T) {
	inBubble(t, ready(1), func(c *Config) {
		c.Stock.WatermarkPerBackend, c.Stock.LowerBoundPerBackend, c.Stock.UpperBoundPerBackend = 1, 1, 1
		c.Queue.Classes = []fairqueue.ClassConfig{{Name: "small", Quantum: 1}, {Name: "large", Quantum: 3}}
	}, func(b *bench) {
		b.arrives(b.t.Context(), &Request{Flow: "running", Placement: pool})
		for _, in := range [][2]string{{"small", "tenant"}, {"large", "tenant"}, {"large", "second"}} {
			b.arrives(b.t.Context(), &Request{Flow: in[1], Path: &fairqueue.Path{Class: in[0]}, Placement: pool})
		}
		shares := map[string]float64{}
		for _, m := range b.scrape("weir_flow_entitled_share") {
			shares[m.GetLabel()[0].GetValue()] = m.GetGauge().GetValue()
		}
		if got := fmt.Sprint(shares); got != "map[second:0.375 tenant:0.625]" {
			t.Errorf("the entitled shares are %s", got)
		}
	})
}

// Which tenant waits, and which is turned away, and why?
func TestWaitsAndRejectionsByFlow(t *testing.T) {
	one := func(c *Config) {
		c.Stock.WatermarkPerBackend, c.Stock.LowerBoundPerBackend, c.Stock.UpperBoundPerBackend = 1, 1, 1
		c.Queue.FlowCapacity, c.Queue.QueueTTL = 1, 10*time.Second
	}
	inBubble(t, ready(1), one, func(b *bench) {
		ask := func(flow string) (*Lease, error) {
			return b.TryEnqueue(b.t.Context(), &Request{Flow: flow, Placement: pool})
		}
		first, err := ask("quiet") // at once: it does not wait
		if err != nil {
			t.Fatal(err)
		}
		served := make(chan *Lease, 1)
		go func() {
			l, err := ask("quiet")
			if err != nil {
				t.Error(err)
			}
			served <- l
		}()
		synctest.Wait()
		expired := make(chan error, 1)
		go func() { _, err := ask("noisy"); expired <- err }()
		synctest.Wait()
		if _, err := ask("noisy"); OutcomeOf(err) != OutcomeFlowFull {
			t.Fatal(err)
		}
		b.Refuse("", "noisy", "", "", ErrBadRequest)
		b.Refuse("", "", "", "", ErrBadRequest)
		time.Sleep(3 * time.Second)
		complete(first)
		second := <-served
		if err := <-expired; !errors.Is(err, ErrExpiredTTL) {
			t.Fatal(err)
		}
		complete(second)
		waits := map[string]string{}
		for _, m := range b.scrape("weir_flow_queue_wait_seconds") {
			waits[m.GetLabel()[0].GetValue()] = fmt.Sprint(m.GetSummary().GetSampleCount(), " ", m.GetSummary().GetSampleSum())
		}
		if got := fmt.Sprint(waits); got != "map[:0 0 noisy:1 10 quiet:1 3]" {
			t.Errorf("waits are %s", got)
		}
		rejections := map[string]float64{}
		for _, m := range b.scrape("weir_flow_rejections_total") {
			rejections[m.GetLabel()[0].GetValue()+" "+m.GetLabel()[1].GetValue()] = m.GetCounter().GetValue()
		}
		if got := fmt.Sprint(rejections); got != "map[ bad-request:1 noisy bad-request:1 noisy flow-full:1 noisy ttl-expired:1]" {
			t.Errorf("rejections are %s", got)
		}
	})
}

// A client that invents names does not get a series for each, and forgotten names leave nothing.
func TestRejectionsByFlowAreBounded(t *testing.T) {
	inBubble(t, ready(1), func(c *Config) { c.MaxLabels = 2 }, func(b *bench) {
		for i := range 10 {
			b.Refuse("", fmt.Sprint("invented-", i), "", "", ErrBadRequest)
		}
		if got := b.scraped("weir_flow_rejections_total", "flow"); len(got) != 3 || got["other"] != 8 {
			t.Errorf("rejections by flow are %v", got)
		}
		time.Sleep(pruneEvery)
		b.scraped("", "")
		time.Sleep(pruneEvery)
		b.scraped("", "")
		time.Sleep(pruneEvery)
		b.scraped("", "")
		if got := b.scraped("weir_flow_rejections_total", "flow"); len(got) != 1 || got["other"] != 8 {
			t.Errorf("rejections by flow are %v", got)
		}
	})
}

// The series of a flow with requests in flight stay, however long these take: its one place in the scrape is the request's.
func TestSeriesOfAFlowInFlightStay(t *testing.T) {
	inBubble(t, ready(1), func(c *Config) { c.MaxLabels = 1 }, func(b *bench) {
		held := b.arrives(b.t.Context(), &Request{Flow: "held", Placement: pool})
		for range 5 {
			time.Sleep(pruneEvery)
			b.scraped("", "")
		}
		held.lease.OnRequestComplete(Completion{Unsent: true})
		b.Refuse("", "second", "", "", ErrBadRequest)
		if got := fmt.Sprint(b.scraped("weir_flow_rejections_total", "flow")); got != "map[held:1 other:1]" {
			t.Errorf("rejections by flow are %s", got)
		}
		if got := fmt.Sprint(b.scraped("weir_flow_in_flight", "flow")); got != "map[held:0 other:0]" {
			t.Errorf("in flight are %s", got)
		}
	})
}

// A request that is counted after the series of its flow were dropped does not bring them back: it counts among the others.
func TestRejectionAfterTheSeriesWereDropped(t *testing.T) {
	inBubble(t, ready(1), func(c *Config) { c.MaxLabels = 1 }, func(b *bench) {
		late := b.metrics.flows.of("late")
		for range 3 {
			b.scraped("", "")
			time.Sleep(pruneEvery)
		}
		late.count(OutcomeBadRequest)
		if got := b.scraped("weir_flow_rejections_total", "flow"); len(got) != 1 || got["other"] != 1 {
			t.Errorf("rejections by flow are %v", got)
		}
	})
}

// The real cost of a flow's requests, and the error of their charges, count once for each request.
func TestActualCostsByFlow(t *testing.T) {
	inBubble(t, ready(100), nil, func(b *bench) {
		ask := func(flow string) *Lease {
			l, err := b.TryEnqueue(b.t.Context(), &Request{Flow: flow, Cost: 100, Placement: pool})
			if err != nil {
				b.t.Fatal(err)
			}
			return l
		}
		atEnd, dear, cheap, never, raised := ask("a"), ask("a"), ask("b"), ask("b"), ask("c")
		unsent, once := ask("c"), ask("d")
		atEnd.OnRequestComplete(Completion{Cost: 40})
		dear.OnRequestComplete(Completion{Cost: 150})
		dear.OnRequestComplete(Completion{Cost: 70}) // a deferred one
		cheap.OnRequestComplete(Completion{Cost: 90})
		once.OnRequestComplete(Completion{Cost: 30})
		never.OnRequestComplete(Completion{})
		never.OnRequestComplete(Completion{Cost: 70})
		raised.OnCost(300, 0)
		raised.OnRequestComplete(Completion{Cost: 250})
		unsent.OnRequestComplete(Completion{Unsent: true, Cost: 1})
		if got := fmt.Sprint(b.scraped("weir_flow_actual_cost_total", "flow")); got != "map[a:190 b:90 c:250 d:30]" {
			t.Errorf("actual costs: %s", got)
		}
		wrong := map[string]float64{}
		for _, m := range b.scrape("weir_flow_misestimated_cost_total") {
			wrong[m.GetLabel()[1].GetValue()+" "+m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue()
		}
		if got := fmt.Sprint(wrong); got != "map[a over:60 a under:50 b over:10 b under:0 c over:0 c under:150 d over:70 d under:0]" {
			t.Errorf("misestimated costs: %s", got)
		}
	})
}
