package app

import (
	"testing"
	"time"

	"github.com/weir-epp/weir/pkg/flowcontrol"
)

// Above a twentieth of the requests of the last five minutes Weir rejects too often, and no longer once these minutes
// are over.
func TestRejecting(t *testing.T) {
	begun := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var e endings
	var now outcomes
	end := func(o flowcontrol.Outcome, n uint64) { now.by[o] += n }
	at := func(after time.Duration) rejections {
		now.at = begun.Add(after)
		return e.since(now)
	}
	if r := at(0); r.tooOften() {
		t.Error("too often before the start")
	}
	e.keep(now)
	end(flowcontrol.OutcomeDispatched, 95)
	end(flowcontrol.OutcomeTTLExpired, 3)
	end(flowcontrol.OutcomeShed, 2)
	if r := at(time.Second); r.tooOften() || r.n != 5 || r.all != 100 || r.window != time.Second {
		t.Errorf("a twentieth: %+v", r)
	}
	end(flowcontrol.OutcomeShed, 2)
	end(flowcontrol.OutcomeClientCancelled, 2) // the client's own
	if r := at(2 * time.Second); !r.tooOften() || r.n != 7 || r.all != 104 || r.main != flowcontrol.OutcomeShed || r.most != 4 {
		t.Errorf("more: %+v", r)
	}
	for after := rejectingStep; after <= rejectingWindow+rejectingStep; after += rejectingStep {
		if r := at(after); r.tooOften() != (after <= rejectingWindow) {
			t.Errorf("after %v: %+v", after, r)
		}
		e.keep(now)
		if len(e.kept) > int(rejectingWindow/rejectingStep)+1 {
			t.Fatalf("%d are kept", len(e.kept))
		}
	}
	end(flowcontrol.OutcomeNoEndpoint, rejectingLeast-1)
	if r := at(rejectingWindow + rejectingStep + 1); r.tooOften() {
		t.Errorf("two requests: %+v", r)
	}
	end(flowcontrol.OutcomeNoEndpoint, 1)
	if r := at(rejectingWindow + rejectingStep + 2); !r.tooOften() || r.share(r.n) != 100 {
		t.Errorf("three of three: %+v", r)
	}
}
