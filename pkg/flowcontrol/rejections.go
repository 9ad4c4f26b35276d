package flowcontrol

import (
	"cmp"
	"errors"
	"sync"
	"time"

	"github.com/weir-epp/weir/pkg/dispatch"
)

// MostRejections is the number of rejections kept.
const MostRejections = 200

// Rejected is one rejected request, also as JSON.
type Rejected struct {
	Time time.Time `json:"time"`
	// ID is the request's name in logs. Unknown fields are empty.
	ID      string `json:"id,omitempty"`
	Flow    string `json:"flow,omitempty"`
	Tier    string `json:"tier,omitempty"`
	Model   string `json:"model,omitempty"`
	Outcome string `json:"outcome"`
	// Text is the reason in words.
	Text string `json:"text,omitempty"`
	// Waited and RetryAfter are in seconds.
	Waited     float64 `json:"waitedSeconds"`
	RetryAfter float64 `json:"retryAfterSeconds,omitempty"`
	// Limit is the limit that rejected it, with the flows that hold most of the limit; nil: none.
	Limit *Limit `json:"limit,omitempty"`
}

// lastRejections keeps the last rejections. It has its own lock, which no decision takes.
type lastRejections struct {
	mu   sync.Mutex
	ring [MostRejections]Rejected
	n    uint64 // of all rejections ever

	// The holders of limits at a time.
	at               time.Time
	waiting, inStock []dispatch.Holder
}

// holdersEvery is the least time between two searches for the largest holders, even in a flood of rejections.
const holdersEvery = 100 * time.Millisecond

// note keeps the rejection of the request described by of, and adds the holders to its limit. It ignores requests whose
// client has gone.
func (c *RequestQueueController) note(of Rejected, r *Rejection) {
	if r.Outcome == OutcomeClientCancelled {
		return
	}
	now := time.Now()
	k := &c.kept
	k.mu.Lock()
	defer k.mu.Unlock()
	if l := r.Limit; l != nil && l.Shared() {
		if now.Sub(k.at) >= holdersEvery {
			k.at = now
			k.waiting, k.inStock = c.metrics.flows.holders()
		}
		if l.Holders = k.waiting; l.ByStock() {
			l.Holders = k.inStock
		}
	}
	if r.Facts != nil {
		r.Facts.Limit = r.Limit
	}
	of.Time, of.Outcome, of.Text, of.RetryAfter, of.Limit = now.UTC(), r.Outcome.String(), r.Err.Error(), r.RetryAfter.Seconds(), r.Limit
	k.ring[k.n%MostRejections] = of
	k.n++
}

// noteOf is note for a request that was offered. err is its *Rejection.
func (c *RequestQueueController) noteOf(r *Request, waited time.Duration, err error) {
	if rej := new(Rejection); errors.As(err, &rej) {
		c.note(Rejected{ID: r.ID, Flow: r.Flow, Tier: r.TierName, Model: cmp.Or(r.TargetModel, r.Model), Waited: waited.Seconds()}, rej)
	}
}

// notePreempted is note for a request that has lost its lease.
func (c *RequestQueueController) notePreempted(id string, w *waiter, r *Rejection) {
	c.note(Rejected{ID: id, Flow: w.Flow(), Tier: w.tier.name, Model: cmp.Or(w.series.target, w.series.model), Waited: w.Waited().Seconds()}, r)
}

// holders returns the flows that hold most of the requests waiting and in flight, among flows with series of their own.
// It does not take a lock used by decisions.
func (m *flowMetrics) holders() (waiting, inStock []dispatch.Holder) {
	for _, s := range m.shown() {
		waiting = dispatch.TopHolders(waiting, dispatch.Holder{Flow: s.flow, Held: s.waiting.Load()})
		inStock = dispatch.TopHolders(inStock, dispatch.Holder{Flow: s.flow, Held: s.inFlight.Load()})
	}
	return waiting, inStock
}

// Rejections returns the last rejections, the newest first.
func (c *RequestQueueController) Rejections() []Rejected {
	k := &c.kept
	k.mu.Lock()
	defer k.mu.Unlock()
	all := make([]Rejected, 0, min(k.n, MostRejections))
	for i := range uint64(cap(all)) {
		all = append(all, k.ring[(k.n-1-i)%MostRejections])
	}
	return all
}
