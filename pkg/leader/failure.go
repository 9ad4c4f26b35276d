package leader

import (
	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// failure counts and logs the failures of one kind of request. An outage is logged once and not each time, and so is its
// end.
type failure struct {
	log          logr.Logger
	failed       func() // called for each failed request, for a metric
	begins, ends string // the lines of the log

	reason string // of the last failure; "": the last request succeeded
}

// note takes the result of a request; nil: success. A line about a failure has the values.
func (f *failure) note(err error, values ...any) {
	reason := ""
	if err != nil {
		f.failed()
		// Error texts contain ports and times; the apiserver's errors have a reason.
		if reason = string(apierrors.ReasonForError(err)); reason == "" {
			reason = "unreachable"
		}
	}
	before := f.reason
	f.reason = reason
	switch reason {
	case before:
	case "":
		f.log.Info(f.ends)
	default:
		f.log.Error(err, f.begins, values...)
	}
}
