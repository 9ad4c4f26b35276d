package leader

import apierrors "k8s.io/apimachinery/pkg/api/errors"

// failure remembers the last failure, so that an outage is logged once and not each time.
type failure struct{ reason string }

// failureNews is the news about a failure.
type failureNews int

const (
	failureKnown failureNews = iota // nothing: it went well before, or wrong for the same reason
	failureNew
	failureOver
)

// note tells the outcome of an attempt; nil: it went well.
func (f *failure) note(err error) failureNews {
	reason := ""
	if err != nil {
		// The texts of errors have ports and times in them; those of the apiserver have a reason.
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
