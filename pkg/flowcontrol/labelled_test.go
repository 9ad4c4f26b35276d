package flowcontrol

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// scraped returns a scrape's values of a metric, by one of its labels.
func (b *bench) scraped(name, label string) map[string]float64 {
	b.t.Helper()
	got := map[string]float64{}
	for _, m := range b.scrape(name) {
		for _, l := range m.GetLabel() {
			if l.GetName() == label {
				got[l.GetValue()] += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return got
}

// scrape returns a scrape's values of a metric.
func (b *bench) scrape(name string) []*dto.Metric {
	b.t.Helper()
	r := prometheus.NewRegistry()
	r.MustRegister(b.Collectors()...)
	families, err := r.Gather()
	if err != nil {
		b.t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()
		}
	}
	return nil
}

// Flows and models beyond the limit share a label. Those not used for a while make room, except models and flows with
// requests in flight.
func TestLabelsAreBoundedAndPruned(t *testing.T) {
	inBubble(t, ready(100), func(c *Config) { c.MaxLabels = 3 }, func(b *bench) {
		visit := func(name string) *Lease {
			l, err := b.TryEnqueue(b.t.Context(), &Request{Flow: name, Model: name, Placement: pool})
			if err != nil {
				t.Fatal(err)
			}
			return l
		}
		want := func(name, label, want string) {
			t.Helper()
			if got := fmt.Sprint(b.scraped(name, label)); got != want {
				t.Errorf("%s: %s, want %s", name, got, want)
			}
		}
		held := visit("held")
		for _, name := range []string{"x", "y", "late", "later", "other", "\xff", "\x1b[2J", "a\u202eb"} {
			complete(visit(name))
		}
		want("weir_flow_served_cost_total", "flow", "map[held:1 other:6 x:1 y:1]")
		want("weir_bypass_total", "model", "map[held:1 other:6 x:1 y:1]")
		time.Sleep(pruneEvery)
		complete(visit("x"))
		b.scraped("", "")       // forgets flow y and model y, which are still shown
		complete(visit("late")) // takes the place among the models; flows that are shown keep theirs
		complete(visit("y"))    // has its place among the flows again; the models have none
		want("weir_flow_served_cost_total", "flow", "map[held:1 other:7 x:2 y:2]")
		want("weir_bypass_total", "model", "map[held:1 late:1 other:7 x:2 y:1]")
		time.Sleep(pruneEvery)
		b.scraped("", "") // drops the model, and forgets flow x; what it shows itself may be from before
		want("weir_flow_served_cost_total", "flow", "map[held:1 other:7 x:2 y:2]")
		want("weir_flow_actual_cost_total", "flow", "map[held:0 other:0 x:0 y:0]")
		want("weir_flow_misestimated_cost_total", "flow", "map[held:0 other:0 x:0 y:0]")
		want("weir_bypass_total", "model", "map[held:1 late:1 other:7 x:2]")
		want("weir_stock_level", "model", "map[held:1 late:0 other:0 x:0]")
		held.OnRequestComplete(Completion{Cost: 7})
		synctest.Wait()
		want("weir_flow_actual_cost_total", "flow", "map[held:7 other:0 x:0 y:0]")
		want("weir_stock_level", "model", "map[held:0 late:0 other:0 x:0]")
		time.Sleep(pruneEvery)
		b.scraped("", "")       // drops flow x
		complete(visit("late")) // takes its place
		want("weir_flow_served_cost_total", "flow", "map[held:1 late:1 other:7 y:2]")
		for _, name := range []string{"actual_cost_total", "misestimated_cost_total", "queue_length", "in_flight"} {
			if got := b.scraped("weir_flow_"+name, "flow"); len(got) != 4 || got["late"] != 0 {
				t.Errorf("%s: %v", name, got)
			}
		}
	})
}

// Values whose hashes are equal are distinct: each keeps its own metrics, whether its neighbours come, stay or go.
func TestLabelsOfOneBucket(t *testing.T) {
	dropped := map[string]bool{}
	table := labelled[string, *string]{
		hash:   func(string) uint64 { return 7 },
		add:    func(key string) *string { return &key },
		drop:   func(key string, _ *string) { dropped[key] = true },
		idle:   func(*string) bool { return true },
		others: func() *string { other := overflow; return &other },
	}
	table.bound(5)
	get := func(key string) string { return *table.get(key, func(string) bool { return true }) }
	want := func(keys, want string) {
		t.Helper()
		var got strings.Builder
		for key := range strings.SplitSeq(keys, "") {
			got.WriteString(get(key)[:1])
		}
		if got.String() != want {
			t.Errorf("the metrics of %s are those of %s, want %s", keys, got.String(), want)
		}
	}
	now := time.Now()
	prune := func() {
		now = now.Add(pruneEvery)
		table.prune(now)
	}
	want("abcdef", "abcdeo") // the sixth is an other one
	prune()                  // all were used
	first := table.get("b", nil)
	want("bd", "bd")
	prune() // a, c, and e were not: there is room for three
	want("bdfgh", "bdfgh")
	if table.get("b", nil) != first {
		t.Error("b has new metrics, though it was used all the time")
	}
	if len(dropped) > 0 {
		t.Errorf("dropped at once: %v", dropped)
	}
	prune()
	if fmt.Sprint(dropped) != "map[a:true c:true e:true]" {
		t.Errorf("dropped %v, want a, c and e", dropped)
	}
}
