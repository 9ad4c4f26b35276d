package flowcontrol

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/weir-epp/weir/pkg/fairqueue"
)

// inClasses has two classes, the first with limits for each of the backends.
func inClasses(c *Config) {
	perBackend(c, 1, 1)
	c.EnqueueAll, c.Queue.CapacityMode = true, fairqueue.Reject
	limit := func(n int64) *int64 { return &n }
	c.Queue.Classes = []fairqueue.ClassConfig{
		{Name: "a", Quantum: 1, Limits: fairqueue.ClassLimits{Requests: limit(2), RawTokens: limit(100)}}, {Name: "b", Quantum: 1},
	}
}

// askIn is a request of a model in a class, with a prompt.
func askIn(model, ring, class string, raw, cached int64) *Request {
	return &Request{
		Flow: "f", Model: model, TargetModel: model, Placement: pool,
		Path: &fairqueue.Path{Ring: ring, Class: class, Prompt: fairqueue.PromptOf(raw, cached)},
	}
}

// Waiters are counted by model and class, in requests and in tokens; rejections by their limit; and waits when they
// end. In the end nothing waits.
func TestClassMetrics(t *testing.T) {
	inBubble(t, ready(1), inClasses, func(b *bench) {
		ctx, leave := context.WithCancel(b.t.Context())
		holder := b.arrives(ctx, askIn("x", "", "b", 5, 5))
		for _, r := range []*Request{
			askIn("x", "", "a", 8, 4), askIn("x", "", "b", 7, 0), askIn("y", "", "no such class", 100, 9), {Flow: "f", Model: "x", TargetModel: "x", Placement: pool},
		} {
			b.arrives(ctx, r)
		}
		shown := func(metric string) string { // by labels, of which class is the first
			got := map[string]float64{}
			for _, m := range b.scrape(metric) {
				label := ""
				for _, l := range m.GetLabel() {
					label += l.GetValue() + " "
				}
				if v := m.GetGauge().GetValue() + m.GetCounter().GetValue(); v != 0 {
					got[label] = v
				}
			}
			return fmt.Sprint(got)
		}
		for got, want := range map[string]string{
			// The one without a class is the third in the first class, whose limit was reached by the second.
			shown("weir_class_queue_length"):       "map[a x :1 a y :1 b x :1]",
			shown("weir_class_queue_tokens"):       "map[a cached x :4 a cached y :9 a raw x :8 a raw y :100 b raw x :7]",
			shown("weir_class_backpressure_total"): "map[a x requests :1]",
		} {
			if got != want {
				b.t.Errorf("got  %s\nwant %s", got, want)
			}
		}
		refused := b.arrives(ctx, askIn("x", "", "a", 1, 0))
		limit := new(fairqueue.LimitError)
		if !errors.As(refused.err, &limit) || limit.Class != "a" || limit.Current != 2 || limit.Most != 2 {
			b.t.Errorf("refused: %v", refused.err)
		}
		leave()
		complete(holder.lease)
		synctest.Wait()
		if got := shown("weir_class_queue_length"); got != "map[]" {
			b.t.Errorf("in the end %s", got)
		}
		waits := uint64(0)
		for _, m := range b.scrape("weir_class_queue_wait_seconds") {
			waits += m.GetHistogram().GetSampleCount()
		}
		if waits != 3 {
			b.t.Errorf("%d waits", waits)
		}
		if n := len(b.scrape("weir_class_deficit")); n != 2 {
			b.t.Errorf("%d deficits", n)
		}
	})
}

// The class of a path is that of its ring, or else of the first ring; an unknown one is the first of its ring.
func TestClassNames(t *testing.T) {
	n := namesOf([]fairqueue.ClassConfig{{Name: "a"}, {Name: "m1", Ring: "m"}, {Name: "b"}, {Name: "m2", Ring: "m"}})
	for path, want := range map[[2]string]string{
		{"", ""}: "a", {"", "b"}: "b", {"", "m1"}: "a", {"m", "m2"}: "m2", {"m", "b"}: "m1", {"no such ring", "b"}: "b", {"x", "m2"}: "a",
	} {
		if got := n.of(&fairqueue.Path{Ring: path[0], Class: path[1]}); got != want {
			t.Errorf("%q: %s, want %s", path, got, want)
		}
	}
	if n.of(nil) != "a" || namesOf(nil) != nil {
		t.Error("a request without a path is in no class")
	}
}
