package extproc

import (
	"strings"
	"time"

	"github.com/weir-epp/weir/pkg/flowcontrol"
)

// verdict is the decision about a request: the controller's grant or rejection, or a refusal before it was offered.
type verdict struct {
	// offered is set if the controller knows its flow and its tier.
	offered   bool
	placement Placement
	// queued is when it began to wait in the queue; zero if it never did.
	queued time.Time
	lease  Lease
	// preempted is nil if it cannot be preempted, or no longer.
	preempted <-chan struct{}
	// picked is the first endpoint of its destination.
	picked string
	// rejection is nil if it was not rejected.
	rejection *flowcontrol.Rejection
}

// waited returns how long the request has stood in the queue, up to now or to its grant, and reports whether it bypassed
// the queue.
func (v *verdict) waited() (wait time.Duration, bypass bool) {
	switch {
	case v.lease != nil:
		wait, queued := v.lease.Queued()
		return wait, !queued
	case !v.queued.IsZero():
		return time.Since(v.queued), false
	default:
		return 0, false
	}
}

// destination returns the ordered list of endpoints that the request may go to, or "" if it was not placed.
func (v *verdict) destination() string {
	if v.lease == nil {
		return ""
	}
	address, fallbacks := v.placement.Chosen()
	v.picked = address
	if address == "" || len(fallbacks) == 0 {
		return address
	}
	return address + "," + strings.Join(fallbacks, ",")
}
