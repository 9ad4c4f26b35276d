package flowcontrol

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/weir-epp/weir/pkg/fairqueue"
)

// Every outcome has its own reason, and every sentinel its outcome: an unmapped one fails here.
func TestEverySentinelHasItsOutcome(t *testing.T) {
	sentinels := map[Outcome]error{
		OutcomeDispatched:       nil,
		OutcomeFlowFull:         fairqueue.ErrInsufficientFlowCapacity,
		OutcomeQueueFull:        fairqueue.ErrTooManyFlows,
		OutcomeShed:             ErrShed,
		OutcomeDisplaced:        ErrDisplaced,
		OutcomeTTLExpired:       ErrExpiredTTL,
		OutcomePreempted:        ErrPreempted,
		OutcomeClientCancelled:  context.Canceled,
		OutcomeDeadlineExceeded: context.DeadlineExceeded,
		OutcomeNoEndpoint:       ErrNoEndpoint,
		OutcomeDraining:         ErrDraining,
		OutcomeBadRequest:       ErrBadRequest,
		OutcomeTooLarge:         ErrTooLarge,
		OutcomeBodyTimeout:      ErrBodyTimeout,
		OutcomeNoMemory:         ErrNoMemory,
		OutcomeInternal:         errors.New("anything else"),
		OutcomeUnknownModel:     ErrUnknownModel,
		OutcomeQuotaExceeded:    ErrQuotaExceeded,
		OutcomeUnsupported:      ErrUnsupported,
	}
	reasons := map[string]Outcome{}
	for o := range Outcome(NumOutcomes) {
		err, listed := sentinels[o]
		if !listed {
			t.Errorf("outcome %v has no sentinel here", o)
			continue
		}
		if err != nil {
			err = &Rejection{Err: fmt.Errorf("wrapped: %w", err)}
		}
		if got := OutcomeOf(err); got != o {
			t.Errorf("%v maps to %v, want %v", err, got, o)
		}
		if other, taken := reasons[o.String()]; taken || o.String() == "" || o.String() == "unknown" {
			t.Errorf("reason %q of outcome %d is also %d's", o, o, other)
		}
		reasons[o.String()] = o
	}
}

// A request refused for lack of memory gets its own time in the schedule. One that was sent too slowly, or asks for a
// model that no endpoint serves, gets none.
func TestRefusedForMemoryHasAPlace(t *testing.T) {
	inBubble(t, ready(1), nil, func(c *bench) {
		for range 3 {
			if r := c.Refuse("", "f", "m", "m", fmt.Errorf("x: %w", ErrBodyTimeout)); r.RetryAfter != 0 || r.Outcome != OutcomeBodyTimeout {
				t.Errorf("%v: come back after %v", r.Outcome, r.RetryAfter)
			}
			if r := c.Refuse("", "f", "m", "m", fmt.Errorf("x: %w", ErrUnknownModel)); r.RetryAfter != 0 || r.Outcome != OutcomeUnknownModel {
				t.Errorf("%v: come back after %v", r.Outcome, r.RetryAfter)
			}
		}
		first := c.Refuse("", "f", "m", "m", fmt.Errorf("x: %w", ErrNoMemory)).RetryAfter
		second := c.Refuse("", "f", "m", "m", fmt.Errorf("x: %w", ErrNoMemory)).RetryAfter
		if min(first, second) < time.Second || max(first, second) > 5*time.Second || second == first {
			t.Errorf("come back after %v and %v", first, second)
		}
	})
}
