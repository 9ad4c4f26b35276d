package recording

import (
	"cmp"
	"io"
	"math"
	"slices"
	"time"

	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/scheduling"
	"github.com/weir-epp/weir/pkg/stock"
)

// History is the input of a machine, from its recording: enough to ask how another configuration would have done.
type History struct {
	// From and To are the times of the first and the last event.
	From, To time.Time
	// Config and Scheduling are the configuration at the beginning; Configs are its changes, by time.
	Config     dispatch.Config
	Scheduling scheduling.Config
	Configs    []ConfigChange
	// Hidden is true if the keys of flows are hashes.
	Hidden bool
	// Grants is the number of repeated grants, and Refused the number of requests refused before they arrived.
	Grants, Refused int
	// Visits are the requests in order of arrival. Requests already there at the beginning arrive at From.
	Visits []*Visit
	// Changes are the changes of the endpoints, by time. The first is the pool at the beginning.
	Changes []PoolChange
	// Reports are the engines' reports, by time.
	Reports []Report
}

// Visit is one request.
type Visit struct {
	At       time.Time
	Arrival  dispatch.Arrival // without its owner and its placement
	Placed   *scheduling.Recalled
	PassedOn bool
	// Present is true if the request was there at the beginning, and Running if it was at an engine then. Waited is its
	// wait before.
	Present, Running bool
	Waited           time.Duration
	// Dispatched, FirstByte and Ended are the times at which it was sent to an engine, its answer began, and it ended
	// in any way; zero: not within the recording. FirstByte and Ended may be as early as the event before.
	Dispatched, FirstByte, Ended time.Time
	// Outcome is how it ended.
	Outcome dispatch.Outcome
	// Expected is its lower charge at the grant, for a prompt expected in the engine's cache; 0: the charge at its
	// arrival.
	Expected fairqueue.Cost
	// Cost is its actual cost, or fairqueue.UnknownCost.
	Cost fairqueue.Cost
}

// ConfigChange is a change of the configuration.
type ConfigChange struct {
	At         time.Time
	Config     dispatch.Config
	Scheduling scheduling.Config
}

// PoolChange is a change of the endpoints.
type PoolChange struct {
	At       time.Time
	Snapshot *scheduling.Snapshot
	Ready    []stock.Backend
	Foreign  []stock.Foreign
}

// Report is an engine's report of itself.
type Report struct {
	At       time.Time
	Endpoint dispatch.Endpoint
	Signals  dispatch.Signals
}

// History replays a recording and returns its history. It takes memory in proportion to the recording. Replay's errors
// and its warning about forged files apply; at a difference, the history ends.
func (f *Format) History(in io.Reader) (h *History, err error) {
	p, file, err := f.open(in)
	if err != nil {
		return nil, err
	}
	defer p.contain(&err)
	w := &historian{player: p, byNumber: map[uint64]*Visit{}}
	w.history.Config = p.machine.Config()
	w.history.Scheduling = p.board.Scheduler().Config()
	w.history.Hidden = file.header.Hidden
	w.begin()
	p.watch = w
	err = p.playAll(file)
	h = &w.history
	h.From, h.To = p.summary.From, p.summary.To
	for _, v := range h.Visits {
		switch {
		case v.Running:
			v.At, v.Dispatched = h.From, h.From
		case v.Present:
			v.At, v.Waited = h.From, max(0, h.From.Sub(v.At))
		}
	}
	h.Changes[0].At = h.From
	return h, err
}

// historian watches a player.
type historian struct {
	*player
	history  History
	byNumber map[uint64]*Visit // requests that may have further events
	latest   time.Time         // of the last event with a time
}

// at returns the time of the event; an event without one has the time of the event before.
func (w *historian) at() time.Time {
	if !w.now.IsZero() {
		w.latest = w.now
	}
	return w.latest
}

// begin notes what is there at the beginning.
func (w *historian) begin() {
	snapshot := w.board.Snapshot()
	pool := PoolChange{Snapshot: snapshot}
	for i := range snapshot.Len() {
		if e := snapshot.At(i); e.Ready && e.Work.Serves() {
			pool.Ready = append(pool.Ready, stock.Backend{ID: stock.BackendID(e.ID), Slots: int32(min(e.Slots, math.MaxInt32))})
		}
	}
	w.history.Changes = append(w.history.Changes, pool)
	names := map[int]string{}
	for _, t := range w.machine.Tiers(nil) {
		names[t.ID] = t.Name
	}
	var present []*request
	for _, r := range w.requests {
		if s := r.Stage(); s != dispatch.StageEnded && s != dispatch.StageNew {
			present = append(present, r)
		}
	}
	slices.SortFunc(present, func(a, b *request) int { return cmp.Compare(a.Number(), b.Number()) })
	for _, r := range present {
		v := w.add(r, &dispatch.Arrival{
			Flow: r.Flow(), TierName: names[r.Tier()], Path: r.Path(), Cost: r.Cost(), Tokens: r.Tokens(),
		})
		v.Present = true
		if v.Running = r.Stage() != dispatch.StageWaiting; !v.Running {
			v.At = w.machine.ArrivedAt(r.Waiter)
		}
		w.byNumber[r.Number()] = v
	}
}

func (w *historian) add(r *request, a *dispatch.Arrival) *Visit {
	v := &Visit{At: w.at(), Arrival: *a, Cost: fairqueue.UnknownCost, PassedOn: w.kind == passOn}
	v.Arrival.Owner, v.Arrival.Placement = nil, nil
	if v.Arrival.TierName == "" {
		if tiers := w.machine.Config().Queue.Tiers; a.Tier >= 0 && a.Tier < len(tiers) {
			v.Arrival.TierName = tiers[a.Tier].Name
		}
	}
	if r.query != nil {
		recalled := r.query.Recalled()
		v.Placed = &recalled
	}
	w.history.Visits = append(w.history.Visits, v)
	return v
}

// visit returns the Visit of a request.
func (w *historian) visit(r *dispatch.Waiter) *Visit {
	if v := w.byNumber[r.Number()]; v != nil {
		return v
	}
	return new(Visit) // it ended before the recording begins
}

// arrived implements watcher. The request has no number before the machine decides on it; it will have the next one.
func (w *historian) arrived(r *request, a *dispatch.Arrival) {
	w.byNumber[w.machine.Arrived()+1] = w.add(r, a)
}

// refusedEarly implements watcher. Another configuration would have refused it, too.
func (w *historian) refusedEarly(*dispatch.Refusal) { w.history.Refused++ }

// configured implements watcher.
func (w *historian) configured(d dispatch.Config, s scheduling.Config) {
	w.history.Configs = append(w.history.Configs, ConfigChange{w.at(), d, s})
}

// event implements watcher.
func (w *historian) event() { w.at() }

// about implements watcher.
func (w *historian) about(r *request) {
	if w.kind == firstByte && r.Stage() == dispatch.StageSent {
		w.visit(r.Waiter).FirstByte = w.at()
	}
}

// completed implements watcher.
func (w *historian) completed(r *dispatch.Waiter, cost fairqueue.Cost) {
	v := w.visit(r)
	if v.Ended.IsZero() {
		v.Ended = w.at()
	}
	v.Cost = cost
}

// expected implements watcher.
func (w *historian) expected(r *dispatch.Waiter, cost fairqueue.Cost) { w.visit(r).Expected = cost }

// pool implements watcher.
func (w *historian) pool(ready []stock.Backend, foreign []stock.Foreign) {
	w.history.Changes = append(w.history.Changes, PoolChange{w.at(), w.board.Snapshot(), ready, foreign})
}

// reported implements watcher.
func (w *historian) reported(e dispatch.Endpoint, s dispatch.Signals) {
	w.history.Reports = append(w.history.Reports, Report{w.at(), e, s})
}

// decided implements watcher.
func (w *historian) decided(r *request, v ruling) {
	of := w.visit(r.Waiter)
	switch v.stage {
	case dispatch.StageGranted, dispatch.StageSent:
		if of.Dispatched.IsZero() && !of.Running {
			w.history.Grants++
		}
		of.Dispatched = w.at()
	case dispatch.StageWaiting:
		of.Dispatched = time.Time{}
	case dispatch.StageEnded:
		of.Outcome, of.Ended = v.outcome, w.at()
	default:
	}
}
