package simulate

import (
	"cmp"
	"slices"
	"time"

	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/recording"
)

// window has the flows' figures within the time of a recording, recorded or simulated. Requests at an engine when the
// recording begins do not count, nor do requests that do not queue.
type window struct {
	from, to time.Time // in the clock of its events
	names    map[string]string
	flows    map[string]*windowed
}

// windowed is the figures of one flow.
type windowed struct {
	requests, granted, rejected, left int
	work                              int64 // of the granted requests
	wait                              histogram
}

// newWindow returns a window for a run, whose clock starts at the epoch.
func newWindow(h *recording.History) *window {
	w := &window{from: epoch, to: epoch.Add(h.To.Sub(h.From)), names: windowFlows(h), flows: map[string]*windowed{}}
	for _, name := range w.names {
		w.flows[name] = &windowed{}
	}
	return w
}

// windowFlows returns the names that flows are counted under: their own for the flows with the most requests.
func windowFlows(h *recording.History) map[string]string {
	counts := map[string]int{}
	for _, v := range h.Visits {
		counts[v.Arrival.Flow]++
	}
	flows := make([]string, 0, len(counts))
	for flow := range counts {
		flows = append(flows, flow)
	}
	slices.SortFunc(flows, func(a, b string) int { return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b)) })
	names := make(map[string]string, len(flows))
	for i, flow := range flows {
		if names[flow] = flow; i >= mostFlows {
			names[flow] = otherFlows
		}
	}
	return names
}

// happened returns a recording's own figures.
func happened(h *recording.History) *window {
	w := newWindow(h)
	w.from, w.to = h.From, h.To
	for _, v := range h.Visits {
		w.arrived(v, v.At)
		if !v.Dispatched.IsZero() {
			w.granted(v, v.At.Sub(h.From), v.Dispatched)
		}
		if !v.Ended.IsZero() {
			w.ended(v, v.Outcome, v.Ended)
		}
	}
	return w
}

// of returns the figures that a request counts for at this time, or nil.
func (w *window) of(v *recording.Visit, now time.Time) *windowed {
	if v.Running || v.PassedOn || now.After(w.to) {
		return nil
	}
	return w.flows[w.names[v.Arrival.Flow]]
}

func (w *window) arrived(v *recording.Visit, now time.Time) {
	if t := w.of(v, now); t != nil {
		t.requests++
	}
}

// granted counts a request; arrived is the time of its arrival since the beginning.
func (w *window) granted(v *recording.Visit, arrived time.Duration, now time.Time) {
	if t := w.of(v, now); t != nil {
		t.granted++
		t.work += chargedFor(v)
		t.wait.add(now.Sub(w.from.Add(arrived)) + v.Waited)
	}
}

func (w *window) ended(v *recording.Visit, o dispatch.Outcome, now time.Time) {
	switch t := w.of(v, now); {
	case t == nil || o == dispatch.OutcomeDispatched:
	case o == dispatch.OutcomeClientCancelled || o == dispatch.OutcomeDeadlineExceeded:
		t.left++
	default:
		t.rejected++
	}
}

// work returns the work of all flows.
func (w *window) work() (sum int64) {
	for _, t := range w.flows {
		sum += t.work
	}
	return sum
}

// add adds the figures of another flow.
func (t *windowed) add(o *windowed) {
	t.requests += o.requests
	t.granted += o.granted
	t.rejected += o.rejected
	t.left += o.left
	t.work += o.work
	t.wait.merge(&o.wait)
}
