package flowcontrol

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-epp/weir/pkg/fairqueue"
)

// ofFlows returns a scrape's series of each flow, with their values.
func (b *bench) ofFlows() map[string]map[string]float64 {
	b.t.Helper()
	r := prometheus.NewRegistry()
	r.MustRegister(b.Collectors()...)
	families, err := r.Gather()
	if err != nil {
		b.t.Fatal(err)
	}
	flows := map[string]map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			flow, by, has := "", "", false
			for _, l := range m.GetLabel() {
				if l.GetName() == "flow" {
					flow, has = l.GetValue(), true
				} else {
					by += " " + l.GetValue()
				}
			}
			if !has {
				continue
			}
			if flows[flow] == nil {
				flows[flow] = map[string]float64{}
			}
			name := strings.TrimPrefix(f.GetName(), "weir_flow_")
			if s := m.GetSummary(); s != nil { // of which Prometheus makes two
				flows[flow][name+"_sum"+by], flows[flow][name+"_count"+by] = s.GetSampleSum(), float64(s.GetSampleCount())
				continue
			}
			flows[flow][name+by] = m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return flows
}

// Was it one tenant? Of each flow a scrape shows the requests that wait, are in flight and have ended, and the tokens of
// its answers by model.
func TestHistoryByFlow(t *testing.T) {
	inBubble(t, ready(1), func(c *Config) { perBackend(c, 1, 1) }, func(b *bench) {
		ask := func(flow, model string) *arrival {
			return b.arrives(b.t.Context(), &Request{Flow: flow, Model: model, Placement: pool})
		}
		want := func(flow, want string) {
			t.Helper()
			of := b.ofFlows()[flow]
			var got []string
			for _, name := range slices.Sorted(maps.Keys(of)) {
				if v := of[name]; v != 0 && strings.HasPrefix(name, "queue_length") || strings.HasPrefix(name, "in_flight") ||
					strings.HasPrefix(name, "requests_total") || strings.HasPrefix(name, "tokens_total") || strings.HasPrefix(name, "rejections") {
					got = append(got, fmt.Sprint(name, " ", v))
				}
			}
			if fmt.Sprint(got) != want {
				t.Errorf("%s: %s,\nwant %s", flow, got, want)
			}
		}
		first := ask("quiet", "m")
		second, third := ask("noisy", "m"), ask("noisy", "n")
		want("quiet", "[in_flight 1 requests_total 0]")
		want("noisy", "[in_flight 0 queue_length 2 requests_total 0]")
		first.lease.OnRequestComplete(Completion{Status: 200, Usage: Usage{Input: 100, Output: 7, Cached: 64}})
		synctest.Wait()
		want("quiet", "[in_flight 0 requests_total 1 tokens_total cached m 64 tokens_total input m 100 tokens_total output m 7]")
		want("noisy", "[in_flight 1 queue_length 1 requests_total 0]")
		second.lease.OnRequestComplete(Completion{Status: 200, Usage: Usage{Input: 1, Output: 2}})
		second.lease.OnRequestComplete(Completion{Status: 200, Usage: Usage{Input: 1, Output: 2}}) // a deferred one
		synctest.Wait()
		third.lease.OnRequestComplete(Completion{Unsent: true})
		b.Refuse("", "noisy", "n", "n", ErrBadRequest)
		want("noisy", "[in_flight 0 rejections_total bad-request 1 rejections_total client-cancelled 1 requests_total 3 "+
			"tokens_total cached m 0 tokens_total input m 1 tokens_total output m 2]")
	})
}

// For any number of models and outcomes, a flow has at most twenty series, and they still sum up.
func TestSeriesOfOneFlow(t *testing.T) {
	for _, first := range []string{"models", "outcomes"} {
		inBubble(t, ready(1), func(c *Config) { perBackend(c, 1, 1) }, func(b *bench) {
			ends := func() {
				for o := OutcomeDispatched + 1; o < NumOutcomes; o++ {
					b.metrics.flows.of("f").count(o)
				}
			}
			if first == "outcomes" {
				ends()
			}
			for i := range 50 {
				l := b.arrives(b.t.Context(), &Request{Flow: "f", Model: fmt.Sprint("m", i), Cost: 5, Placement: pool}).lease
				l.OnRequestComplete(Completion{Cost: 4, Usage: Usage{Input: 10, Output: 2, Cached: 1}})
			}
			ends()
			held := b.arrives(b.t.Context(), &Request{Flow: "f", Placement: pool})
			b.arrives(b.t.Context(), &Request{Flow: "f", Placement: pool}) // waits: it has an entitled share
			of := b.ofFlows()["f"]
			if len(of) != seriesOfFlow {
				t.Errorf("%s first: %d series, want %d: %v", first, len(of), seriesOfFlow, slices.Sorted(maps.Keys(of)))
			}
			sums := map[string]float64{}
			for name, v := range of {
				words := strings.Fields(name)
				sums[strings.Join(words[:min(len(words), 2)], " ")] += v
				if len(words) > 1 {
					sums[words[0]] += v
				}
			}
			rejections := float64(NumOutcomes - 1)
			if first == "outcomes" {
				rejections *= 2
			}
			if sums["tokens_total input"] != 500 || sums["tokens_total output"] != 100 || sums["tokens_total cached"] != 50 ||
				sums["rejections_total"] != rejections || of["requests_total"] != 50+rejections {
				t.Errorf("%s first: the sums are %v", first, sums)
			}
			complete(held.lease)
		})
	}
}

// A tenant with few models and few ways to fail has a series for each.
func TestModelsOfAFlowHaveNames(t *testing.T) {
	var f furtherSeries
	for _, model := range []string{"a", "b", "a", "c", "d", "other"} {
		f.tokens(model).add(Usage{Input: 1})
	}
	if got := fmt.Sprint(f.models); got != "[{a {2 0 0}} {b {1 0 0}} {other {3 0 0}}]" {
		t.Errorf("the models are %s", got)
	}
	f = furtherSeries{}
	f.tokens("a")
	for _, o := range []Outcome{OutcomeFlowFull, OutcomeTTLExpired, OutcomeClientCancelled} {
		*f.rejections(o)++
	}
	f.tokens("b")
	*f.rejections(OutcomeInternal)++
	if got := fmt.Sprintf("%v %d %s", f.outcomes, len(f.models), f.models[1].model); got != fmt.Sprintf("[{%d 1} {%d 1} {%d 1} {%d 1}] 2 other",
		OutcomeFlowFull, OutcomeTTLExpired, OutcomeClientCancelled, NumOutcomes) {
		t.Errorf("the outcomes are %s", got)
	}
}

// A million identities have the series of a thousand and of "other", for any duration and scrape times.
func TestAMillionIdentities(t *testing.T) {
	inBubble(t, ready(1), func(c *Config) { c.Queue.FlowCapacity = 1 }, func(b *bench) {
		const all, often = 1_000_000, 10
		most := 0
		for i := range all {
			flow := "invented-" + strconv.Itoa(i)
			if i%1000 == 0 {
				l := b.arrives(b.t.Context(), &Request{Flow: flow, Model: flow, Placement: pool}).lease
				l.OnRequestComplete(Completion{Cost: 1, Usage: Usage{Input: 1}})
			} else {
				b.metrics.flows.of(flow).count(OutcomeBadRequest) // as Refuse does
			}
			if i%(all/often) != all/often-1 {
				continue
			}
			flows, n := b.ofFlows(), 0
			for flow, of := range flows {
				n += len(of)
				if len(of) > seriesOfFlow {
					t.Fatalf("after %d: %s has %d series", i, flow, len(of))
				}
			}
			if most = max(most, len(flows)); len(flows) > 1001 || flows["other"] == nil {
				t.Fatalf("after %d: %d flows", i, len(flows))
			}
			if n > 1001*seriesOfFlow {
				t.Fatalf("after %d: %d series", i, n)
			}
			time.Sleep(pruneEvery) // the next scrape makes room
		}
		if most != 1001 {
			t.Errorf("there were never more than %d flows", most)
		}
	})
}

// The entitled shares of flows beyond the limit are one series, so that the shares of a tier still sum up.
func TestEntitledSharesBeyondTheLimit(t *testing.T) {
	inBubble(t, ready(1), func(c *Config) { c.MaxLabels = 2; perBackend(c, 1, 1) }, func(b *bench) {
		for _, flow := range []string{"running", "a", "b", "c", "d"} {
			b.arrives(b.t.Context(), &Request{Flow: flow, Placement: pool})
		}
		if got := fmt.Sprint(b.scraped("weir_flow_entitled_share", "flow")); got != "map[a:0.25 other:0.75]" {
			t.Errorf("the entitled shares are %s", got)
		}
	})
}

// Quantiles of a tier's waits are within a sixteenth of the exact ones, and drop waits older than five minutes.
func TestRecentWaits(t *testing.T) {
	var r recentWaits
	now, random := time.Unix(1_000_000, 0), rand.New(rand.NewPCG(1, 2))
	r.quantiles(now)
	for range 1000 { // old ones, all longer
		r.observe(time.Hour)
	}
	var waits []time.Duration
	for i := range 10_000 {
		wait := time.Duration(math.Exp(random.Float64()*14) * 1e6) // 1 ms to 20 minutes
		waits = append(waits, wait)
		if i%100 == 0 { // a reading every two seconds, from a minute later on
			r.quantiles(now.Add(time.Minute + time.Duration(i)*20*time.Millisecond))
		}
		r.observe(wait)
	}
	if q := r.quantiles(now.Add(299 * time.Second)); q.N != 11_000 || q.P99 < 50*time.Minute {
		t.Fatalf("before five minutes are over: %+v", q)
	}
	slices.Sort(waits)
	q := r.quantiles(now.Add(300 * time.Second))
	if q.N != 10_000 {
		t.Fatalf("%d waits", q.N)
	}
	for percent, got := range map[int]time.Duration{50: q.Median, 90: q.P90, 99: q.P99} {
		if exact := waits[len(waits)*percent/100-1]; math.Abs(float64(got-exact)) > float64(exact)/16+float64(waitUnit) {
			t.Errorf("%d %%: %v, want %v", percent, got, exact)
		}
	}
	// Waits since the last reading count once more, at any time after it.
	r.observe(time.Second)
	if q := r.quantiles(now.Add(time.Hour)); q.N < 1 || q.N > 2001 {
		t.Errorf("after an hour: %+v", q)
	}
	if q := r.quantiles(now.Add(time.Hour + 5*time.Minute)); q != (WaitQuantiles{}) {
		t.Errorf("after five minutes more: %+v", q)
	}
	r.observe(1000 * time.Hour) // more than is told apart
	r.observe(-time.Second)     // of a clock that was set back
	if q := r.quantiles(now); q.N != 2 || q.Median != waitUnit/2 || q.P99 < 24*time.Hour {
		t.Errorf("of extremes: %+v", q)
	}
}

// A scrape has the quantiles of each tier in which requests have waited.
func TestWaitsByTier(t *testing.T) {
	inBubble(t, ready(1), func(c *Config) { perBackend(c, 1, 1) }, func(b *bench) {
		held := b.arrives(b.t.Context(), &Request{Flow: "f", Placement: pool})
		if got := b.scrape("weir_tier_queue_wait_quantile_seconds"); len(got) != 0 {
			t.Errorf("without a wait: %v", got)
		}
		waits := b.arrives(b.t.Context(), &Request{Flow: "f", Placement: pool})
		time.Sleep(4 * time.Second)
		complete(held.lease)
		synctest.Wait()
		complete(waits.lease)
		for quantile, got := range b.scraped("weir_tier_queue_wait_quantile_seconds", "quantile") {
			if math.Abs(got-4) > 4./16 {
				t.Errorf("quantile %s is %v s, want 4", quantile, got)
			}
		}
		if got := b.scraped("weir_tier_queue_wait_quantile_seconds", "quantile"); len(got) != 3 {
			t.Errorf("quantiles: %v", got)
		}
	})
}

// The counts of flows and tiers, from which a page tells shares: of a cost of 100, a flow has what it was dispatched.
func TestFlowCounts(t *testing.T) {
	inBubble(t, ready(1), smg(1), func(b *bench) {
		for _, a := range []struct {
			flow string
			tier int
			cost int64
		}{{"a", bulk, 30}, {"b", bulk, 50}, {"a", system, 7}, {"a", bulk, 20}} {
			complete(b.arrives(b.t.Context(), &Request{Flow: a.flow, Tier: a.tier, Cost: fairqueue.Cost(a.cost), Placement: pool}).lease)
		}
		b.Refuse("", "a", "", "", ErrBadRequest)
		b.Refuse("", "b", "", "", ErrNoEndpoint)
		got := map[string]FlowCounts{}
		for _, c := range b.FlowCounts() {
			got[c.Flow] = c
		}
		if s := fmt.Sprint(got); s != "map[a:{a 0 0 4 1 0 map[bulk:50 system:7]} b:{b 0 0 2 1 1 map[bulk:50]}]" {
			t.Errorf("the counts are %s", s)
		}
	})
}

// No quantile is above the longest wait, such as the TTL.
func TestNoQuantileAboveTheLongestWait(t *testing.T) {
	var r recentWaits
	for range 10 {
		r.observe(30 * time.Second)
	}
	if q := r.quantiles(time.Unix(0, 0)); q.P99 > 30*time.Second || q.Median < 28*time.Second {
		t.Errorf("%+v", q)
	}
}
