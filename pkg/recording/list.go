package recording

import (
	"cmp"
	"io"
	"slices"
	"time"

	"github.com/weir-epp/weir/pkg/decision"
	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/scheduling"
	"github.com/weir-epp/weir/pkg/stock"
)

// Listed is one request of a recording, in short.
type Listed struct {
	Number uint64 // 0: refused before it arrived
	ID     string
	Flow   string
	Tier   string
	// At is the time of its arrival, and Until that of the last decision on it. A zero At is before the recording.
	At, Until time.Time
	// Waited is the time in the queue. Outcome is its outcome, decision.Waiting or decision.InFlight.
	Waited   time.Duration
	Outcome  string
	Endpoint string // its address; "": it went nowhere
	// Service is the time from the last decision to the end of the answer; 0 unless the request was dispatched and has
	// ended.
	Service time.Duration
}

// List has the requests of a recording.
type List struct {
	// From and To are the times of its first and its last event.
	From, To time.Time
	Requests []Listed // by arrival
}

// List lists a recording's requests of these flows; nil: of all flows. It takes memory in proportion to the recording.
// Replay's errors and its warning about forged files apply.
func (f *Format) List(in io.Reader, flows []string) (l *List, err error) {
	p, file, err := f.open(in)
	if err != nil {
		return nil, err
	}
	defer p.contain(&err)
	w := &lister{player: p, flows: flows, live: map[uint64]int{}, tiers: map[int]string{}}
	w.begin()
	p.watch = w
	if err := p.playAll(file); err != nil {
		return nil, err
	}
	l = &List{From: p.summary.From, To: p.summary.To, Requests: w.requests}
	for i := range l.Requests {
		r := &l.Requests[i]
		if r.Outcome == decision.Waiting {
			r.Until, r.Waited = l.To, l.To.Sub(later(r.At, l.From))
		}
	}
	return l, nil
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// Between returns the list with the requests that waited or were decided on between two times.
func (l *List) Between(from, to time.Time) *List {
	short := *l
	short.Requests = slices.DeleteFunc(slices.Clone(l.Requests), func(r Listed) bool { return r.Until.Before(from) || r.At.After(to) })
	return &short
}

// Slowest returns the arrived requests with the longest waits, the longest first, and at most most.
func (l *List) Slowest(most int) []Listed {
	slow := slices.DeleteFunc(slices.Clone(l.Requests), func(r Listed) bool { return r.Number == 0 })
	slices.SortStableFunc(slow, func(a, b Listed) int { return cmp.Compare(b.Waited, a.Waited) })
	return slow[:min(most, len(slow))]
}

// lister watches a player.
type lister struct {
	*player
	flows    []string // nil: all
	requests []Listed
	live     map[uint64]int // indices of the requests that may change
	tiers    map[int]string // names
	latest   time.Time
}

// at returns the time of the event; an event without one has the time of the event before.
func (w *lister) at() time.Time {
	if !w.now.IsZero() {
		w.latest = w.now
	}
	return w.latest
}

// wants reports whether requests of a flow are listed.
func (w *lister) wants(flow string) bool { return w.flows == nil || slices.Contains(w.flows, flow) }

// begin lists the requests that are there at the beginning.
func (w *lister) begin() {
	var present []*request
	for _, r := range w.player.requests {
		if s := r.Stage(); s != dispatch.StageEnded && s != dispatch.StageNew && w.wants(r.Flow()) {
			present = append(present, r)
		}
	}
	slices.SortFunc(present, func(a, b *request) int { return cmp.Compare(a.Number(), b.Number()) })
	for _, r := range present {
		x := Listed{Number: r.Number(), ID: r.id, Flow: r.Flow(), Tier: w.tierOf(r.Tier()), Waited: r.Waited(), Outcome: decision.InFlight}
		if r.Stage() == dispatch.StageWaiting {
			x.Outcome = decision.Waiting
		}
		w.live[x.Number] = len(w.requests)
		w.requests = append(w.requests, x)
	}
}

// tierOf returns the name of a tier.
func (w *lister) tierOf(id int) string {
	name, known := w.tiers[id]
	if !known {
		for _, t := range w.machine.Tiers(nil) {
			w.tiers[t.ID] = t.Name
		}
		name = w.tiers[id]
	}
	return name
}

// arrived implements watcher. The request has no number before the machine decides on it; it will have the next one.
func (w *lister) arrived(r *request, a *dispatch.Arrival) {
	if w.wants(a.Flow) {
		number := w.machine.Arrived() + 1
		w.live[number] = len(w.requests)
		w.requests = append(w.requests, Listed{Number: number, ID: r.id, Flow: a.Flow, At: w.at(), Until: w.at(), Outcome: decision.Waiting})
	}
}

// refusedEarly implements watcher.
func (w *lister) refusedEarly(r *dispatch.Refusal) {
	if w.wants(r.Flow) {
		w.requests = append(w.requests, Listed{ID: r.ID, Flow: r.Flow, At: w.at(), Until: w.at(), Outcome: r.Outcome.String()})
	}
}

// decided implements watcher.
func (w *lister) decided(r *request, v ruling) {
	i, listed := w.live[r.Number()]
	if !listed {
		return
	}
	x := &w.requests[i]
	x.Tier, x.Until, x.Waited = w.tierOf(r.Tier()), w.at(), r.Waited()
	switch v.stage {
	case dispatch.StageGranted, dispatch.StageSent:
		x.Outcome = decision.InFlight
		if e, ok := w.board.Snapshot().ByID(v.endpoint); ok {
			x.Endpoint = e.Address
		}
	case dispatch.StageWaiting:
		x.Outcome, x.Endpoint = decision.Waiting, ""
	case dispatch.StageEnded:
		x.Outcome = v.outcome.String()
		delete(w.live, r.Number())
	default:
	}
}

// completed implements watcher. Until stays: the dispatch was the last decision on the request.
func (w *lister) completed(r *dispatch.Waiter, _ fairqueue.Cost) {
	if i, listed := w.live[r.Number()]; listed && r.Stage() != dispatch.StageEnded {
		x := &w.requests[i]
		x.Outcome, x.Service = dispatch.OutcomeDispatched.String(), w.at().Sub(later(x.Until, w.summary.From))
		delete(w.live, r.Number())
	}
}

// The others implement watcher.
func (w *lister) event()                                        { w.at() }
func (w *lister) about(*request)                                {}
func (w *lister) expected(*dispatch.Waiter, fairqueue.Cost)     {}
func (w *lister) pool([]stock.Backend, []stock.Foreign)         {}
func (w *lister) reported(dispatch.Endpoint, dispatch.Signals)  {}
func (w *lister) configured(dispatch.Config, scheduling.Config) {}
