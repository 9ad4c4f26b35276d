package dispatch

import (
	"time"

	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/stock"
)

// Stage is where a request stands. It moves down this list, but for a granted request that waits again: its place was
// taken before its destination was sent.
type Stage uint8

// The stages.
const (
	StageNew       Stage = iota // not offered yet
	StageWaiting                // in the queue
	StageGranted                // holds a lease; its stream has not been told yet
	StageSent                   // the destination is on its way to Envoy
	StageStreaming              // the answer has begun: it is never preempted from here on
	StageEnded                  // rejected, preempted or complete
)

// Arrival is what the machine is told of a request when it arrives.
type Arrival struct {
	// Flow is the key of the flow; requests with equal keys (and tiers) share one fair share.
	Flow string
	// TierName names its tier; a name that does not exist is the lowest one. Empty: Tier is its rank, 0 the highest, and
	// a rank that does not exist is the lowest. A name stays right when a reload changes the ranks.
	TierName string
	Tier     int
	// Cost is the work it stands for in the queue; less than 1 counts as 1.
	Cost fairqueue.Cost
	// Deadline is the client's own; zero: none.
	Deadline time.Time
	// Placement is what the Placer needs to know of the request.
	Placement Placement
	// Owner is the caller's; the machine does not touch it.
	Owner any
}

// Waiter is one request. The zero value is ready for Arrive or PassOn, once. It lies in a structure of the caller's.
type Waiter struct {
	owner     any
	queued    fairqueue.Request
	number    uint64
	placement Placement
	flow      *flowAccount
	lease     Lease

	stage     Stage
	outcome   Outcome
	waiting   bool  // it counts as a waiting request of its flow
	wasQueued bool  // it was in the queue
	bypass    bool  // it was dispatched without waiting
	panics    uint8 // of the Placer in a row, for it while it waits
	struck    int64 // the last of them, in Unix nanoseconds

	waited  time.Duration
	retry   time.Duration
	failure error // of OutcomeInternal
}

// Owner is Arrival.Owner.
func (w *Waiter) Owner() any { return w.owner }

// Number counts the requests that have arrived, from 1: it tells this one from all others. 0: it has not arrived.
func (w *Waiter) Number() uint64 { return w.number }

// Stage is where the request stands.
func (w *Waiter) Stage() Stage { return w.stage }

// Lease is what the request holds; nil while it holds nothing.
func (w *Waiter) Lease() *Lease {
	if !w.lease.held.Held() {
		return nil
	}
	return &w.lease
}

// Outcome is how a request of StageEnded ended.
func (w *Waiter) Outcome() Outcome { return w.outcome }

// RetryAfter is when the client of a rejected request should come back, already spread (each rejection has a moment of
// its own); 0: say nothing.
func (w *Waiter) RetryAfter() time.Duration { return w.retry }

// Failure is what ended a request as OutcomeInternal.
func (w *Waiter) Failure() error { return w.failure }

// WasQueued reports whether the request was ever in the queue.
func (w *Waiter) WasQueued() bool { return w.wasQueued }

// Bypassed reports whether the request was dispatched without waiting.
func (w *Waiter) Bypassed() bool { return w.bypass }

// Waited is the time from arrival to the grant or the rejection of a request that was in the queue; otherwise 0.
func (w *Waiter) Waited() time.Duration { return w.waited }

// Flow is the key of the request's flow.
func (w *Waiter) Flow() string { return w.queued.Flow }

// Tier is the identifier of the request's tier; it is known from Arrive on.
func (w *Waiter) Tier() int { return w.queued.Tier }

// Cost is the work that the request stands for.
func (w *Waiter) Cost() fairqueue.Cost { return w.queued.Cost }

// Expires is when a waiting request's time in the queue is over.
func (w *Waiter) Expires() time.Time { return w.queued.Expires() }

// TTLOver reports whether at now the TTL is over, and was before the client's own deadline.
func (w *Waiter) TTLOver(now time.Time) bool { return w.queued.TTLOver(now) }

// Lease is one request's holding of stock and of a reservation at an endpoint, from its grant until it is settled, which
// happens exactly once.
type Lease struct {
	waiter      *Waiter
	held        stock.Lease
	reservation Reservation

	preemptible bool   // it was granted as a possible victim
	counted     bool   // it counts against its flow's cap at its endpoint
	victimAt    int32  // 1-based slot among the victims at its endpoint; 0: not among them
	victimAge   uint64 // its number among the possible victims: the newest has the largest
}

// Waiter is the request that holds the lease.
func (l *Lease) Waiter() *Waiter { return l.waiter }

// Endpoint is the endpoint that is reserved for the request.
func (l *Lease) Endpoint() Endpoint { return l.reservation.Endpoint() }

// Preemptible reports whether the lease may ever be taken for a higher tier.
func (l *Lease) Preemptible() bool { return l.preemptible }

// Tier is the identifier of the tier that the lease counts for.
func (l *Lease) Tier() int { return l.held.Tier() }

// Promoted reports whether the lease was granted by promotion.
func (l *Lease) Promoted() bool { return l.held.Promoted() }

// waiterOf is the request behind an entry of the queue.
func waiterOf(r *fairqueue.Request) *Waiter { return r.Owner.(*Waiter) }
