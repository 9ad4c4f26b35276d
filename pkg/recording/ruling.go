package recording

import (
	"fmt"
	"time"

	"github.com/weir-epp/weir/pkg/dispatch"
)

// ruling is the content of a verdict's record: the result of an event for one request.
type ruling struct {
	stage    dispatch.Stage
	endpoint dispatch.Endpoint // in StageGranted and StageSent
	outcome  dispatch.Outcome  // in StageEnded
	retry    time.Duration     // in StageEnded
}

// rulingOn returns the ruling on a request after an event.
func rulingOn(w *dispatch.Waiter) ruling {
	v := ruling{stage: w.Stage()}
	switch v.stage {
	case dispatch.StageGranted, dispatch.StageSent:
		v.endpoint = w.Lease().Endpoint()
	case dispatch.StageEnded:
		v.outcome, v.retry = w.Outcome(), w.RetryAfter()
	default:
	}
	return v
}

// ruling writes a ruling.
func (s *segment) ruling(v ruling) {
	s.number(uint64(v.stage))
	switch v.stage {
	case dispatch.StageGranted, dispatch.StageSent:
		s.signed(int64(v.endpoint))
	case dispatch.StageEnded:
		s.number(uint64(v.outcome))
		s.number(uint64(v.retry))
	default:
	}
}

// ruling reads a ruling.
func (r *reader) ruling() ruling {
	v := ruling{stage: dispatch.Stage(r.index(int(dispatch.StageEnded) + 1))}
	switch v.stage {
	case dispatch.StageGranted, dispatch.StageSent:
		v.endpoint = dispatch.Endpoint(r.signed())
	case dispatch.StageEnded:
		v.outcome, v.retry = r.outcome(), time.Duration(r.number())
	default:
	}
	return v
}

// of describes the ruling on the request with this name.
func (v ruling) of(name string) string {
	text := "request " + name
	switch v.stage {
	case dispatch.StageGranted, dispatch.StageSent:
		return fmt.Sprintf("%s dispatched to endpoint %d", text, v.endpoint)
	case dispatch.StageEnded:
		return fmt.Sprintf("%s ended as %v, to come back in %v", text, v.outcome, v.retry)
	case dispatch.StageWaiting:
		return text + " waits"
	default:
		return fmt.Sprintf("%s in stage %d", text, v.stage)
	}
}
