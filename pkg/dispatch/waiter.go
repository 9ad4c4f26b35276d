package dispatch

import (
	"time"

	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/scheduling"
	"github.com/weir-epp/weir/pkg/stock"
)

// Stage is the stage of a request's life. Stages only increase, except that a granted request waits again if it is
// preempted before its destination is sent.
type Stage uint8

// The stages.
const (
	StageNew       Stage = iota // not yet passed to the machine
	StageWaiting                // in the queue
	StageGranted                // holds a lease; its stream has not been told yet
	StageSent                   // the destination is on its way to Envoy
	StageStreaming              // the answer has begun: it can no longer be preempted
	StageEnded                  // rejected, preempted or complete
)

// Arrival describes an arriving request.
type Arrival struct {
	// Flow is the key of the flow; requests with equal keys (and tiers) share one fair share.
	Flow string
	// TierName names its tier; an unknown name means the lowest tier. If the name is empty, Tier is the rank, with 0
	// the highest; an unknown rank means the lowest. A name stays right when a reload changes the ranks.
	TierName string
	Tier     int
	// Path names its class within the tier and its urgency there; nil names nothing.
	Path *fairqueue.Path
	// Cost is its work, which the queue charges; less than 1 counts as 1.
	Cost fairqueue.Cost
	// Tokens is its estimated part of the stock in tokens; less than 1 means as many as its cost.
	Tokens stock.Tokens
	// Tenant is the identity whose quota counts the request; empty means no quota. Uses is the estimated number of
	// tokens of prompt and answer; less than 1 means as many as its cost.
	Tenant string
	Uses   int64
	// Deadline is the client's own; zero means none.
	Deadline time.Time
	// Placement is its constraint on endpoints.
	Placement Placement
	// Explain asks for the Facts of the request.
	Explain bool
	// Owner belongs to the caller; the machine does not use it.
	Owner any
}

// Waiter is one request. The zero value is ready for Arrive or PassOn, once. It is embedded in a structure of the
// caller's.
type Waiter struct {
	queued    fairqueue.Request
	owner     any `graph:"-"`
	placement Placement
	flow      *flowAccount
	leased

	stage     Stage
	outcome   Outcome
	waiting   bool // it is counted as waiting in its flow
	wasQueued bool // it was in the queue

	// begun is when the lease was taken, in ms after Machine.born, plus 1, modulo 2^32; 0: not recorded.
	begun uint32

	waited time.Duration
	retry  time.Duration
	number uint64
	rare   *rare // nil if there is nothing
}

// Owner returns Arrival.Owner.
func (w *Waiter) Owner() any { return w.owner }

// Placement returns Arrival.Placement.
func (w *Waiter) Placement() Placement { return w.placement }

// Number returns the request's number among all that have arrived, from 1; 0 if it has not arrived.
func (w *Waiter) Number() uint64 { return w.number }

// Stage returns the request's stage.
func (w *Waiter) Stage() Stage { return w.stage }

// Lease returns the request's lease; nil if it holds none.
func (w *Waiter) Lease() *Lease {
	if !w.held.Held() {
		return nil
	}
	return (*Lease)(w)
}

// Granted returns the lease of a request that has had one, even after it was settled.
func (w *Waiter) Granted() *Lease { return (*Lease)(w) }

// Outcome returns how a request of StageEnded ended.
func (w *Waiter) Outcome() Outcome { return w.outcome }

// RetryAfter returns the Retry-After of a rejected request, already spread over rejections; 0 means none.
func (w *Waiter) RetryAfter() time.Duration { return w.retry }

// Failure returns the cause that ended a request as OutcomeInternal, or the *fairqueue.LimitError that ended it as
// OutcomeQueueFull.
func (w *Waiter) Failure() error {
	if w.rare == nil {
		return nil
	}
	return w.rare.failure
}

// WasQueued reports whether the request was ever in the queue.
func (w *Waiter) WasQueued() bool { return w.wasQueued }

// Bypassed reports whether the request was dispatched without waiting.
func (w *Waiter) Bypassed() bool { return w.way != fromQueue }

// Waited returns the time from arrival to the grant or the rejection of a request that was queued; otherwise 0.
func (w *Waiter) Waited() time.Duration { return w.waited }

// Flow returns the key of the request's flow.
func (w *Waiter) Flow() string { return w.queued.Flow }

// Path returns the request's names beside its flow and tier, or nil.
func (w *Waiter) Path() *fairqueue.Path { return w.queued.Path }

// Tier returns the identifier of the request's tier, which is known from Arrive on.
func (w *Waiter) Tier() int { return w.queued.Tier }

// Cost returns the request's cost.
func (w *Waiter) Cost() fairqueue.Cost { return w.queued.Cost }

// Tokens returns the request's part of the stock in tokens while it holds its lease, by the latest estimate.
func (w *Waiter) Tokens() stock.Tokens { return w.held.Tokens() }

// MaxWait returns the longest total wait of a queued request.
func (w *Waiter) MaxWait() time.Duration { return w.queued.MaxWait() }

// Lease is one request's holding of stock and of a reservation at an endpoint, from its grant until it is settled,
// exactly once. It is the same structure as the Waiter, so neither needs a pointer to the other.
type Lease Waiter

// leased is the part of a request that its lease needs.
type leased struct {
	held        stock.Lease // has the tokens from the arrival on
	reservation Reservation

	preemptible bool   // it was a possible victim when granted
	way         way    // how it was dispatched
	counted     bool   // it is counted against its flow's cap at its endpoint
	ageNumber   int32  // among the leases at its endpoint, the oldest first; 0 if it is not among them
	victimIndex int32  // 1-based index among the victims at its endpoint; 0 if it is not among them
	victimAge   uint64 // its number among the possible victims; the newest has the largest
}

// way is how a request is dispatched.
type way uint8

const (
	fromQueue way = iota // it waits, or has waited
	atOnce               // a bypass
	passedOn             // it never queues, since it is not inference
)

// Waiter returns the request that holds the lease.
func (l *Lease) Waiter() *Waiter { return (*Waiter)(l) }

// Endpoint returns the endpoint that is reserved for the request.
func (l *Lease) Endpoint() Endpoint { return l.reservation.Endpoint() }

// PrefillEngine returns the prefill engine reserved to read the prompt; NoEndpoint if there is none, or no longer.
func (l *Lease) PrefillEngine() Endpoint { return l.reservation.In(scheduling.Prefilling) }

// Prefills reports whether there is such an engine.
func (l *Lease) Prefills() bool { return l.PrefillEngine() != NoEndpoint }

// Reads reports whether the endpoint reads the prompt itself and the first token has not come, where prompts are
// counted.
func (l *Lease) Reads() bool { return l.reservation.Reads() }

// Preemptible reports whether the lease may ever be preempted.
func (l *Lease) Preemptible() bool { return l.preemptible }

// Tier returns the identifier of the tier that the lease counts for.
func (l *Lease) Tier() int { return l.held.Tier() }

// Promoted reports whether the lease was granted by promotion.
func (l *Lease) Promoted() bool { return l.held.Promoted() }

// waiterOf returns the request of an entry of the queue.
func waiterOf(r *fairqueue.Request) *Waiter { return r.Owner.(*Waiter) }
