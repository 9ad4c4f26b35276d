package leader

import apierrors "k8s.io/apimachinery/pkg/api/errors"

// failure remembers the last failure, so that an outage is logged once and not each time.
type failure struct{ reason string }

// failureNews is the news about a failure.
type failureNews int

const (
	failureKnown failureNews = iota // no news: it succeeded before as well, or failed for the same reason
	failureNew
	failureOver
)

// note takes the result of an attempt; nil: success.
func (f *failure) note(err error) failureNews {
	reason := ""
	if err != nil {
		// Error texts contain ports and times; the apiserver's errors have a reason.
		if reason = string(apierrors.ReasonForError(err)); reason == "" {
			reason = "unreachable"
		}
	}
	before := f.reason
	f.reason = reason
	switch reason {
	case before:
		return failureKnown
	case "":
		return failureOver
	default:
		return failureNew
	}
}
