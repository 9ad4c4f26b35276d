package extproc

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/flowcontrol"
)

// limitBody is the error body of Dynamo's selection service for a request of a class with a reached limit.
type limitBody struct {
	Error   string `json:"error"`
	Details struct {
		PolicyClass string `json:"policy_class"`
		LimitKind   string `json:"limit_kind"`
		Current     int64  `json:"current"`
		Limit       int64  `json:"limit"`
	} `json:"details"`
}

// limitOf returns the class limit that rejected a request, or nil.
func limitOf(rej *flowcontrol.Rejection) *fairqueue.LimitError {
	if limit := new(fairqueue.LimitError); errors.As(rej.Err, &limit) {
		return limit
	}
	return nil
}

// bodyOfLimit returns the selection service's body.
func bodyOfLimit(e *fairqueue.LimitError) []byte {
	var b limitBody
	b.Error = fmt.Sprintf("router policy class %q queue %s limit reached (current=%d, limit=%d)", e.Class, e.Limit, e.Current, e.Most)
	b.Details.PolicyClass, b.Details.LimitKind, b.Details.Current, b.Details.Limit = e.Class, e.Limit.String(), e.Current, e.Most
	text, _ := json.Marshal(b) // of strings and numbers it cannot fail
	return text
}

// limitMessages are for users of other presets, which do not show the length of the queue.
var limitMessages = [fairqueue.NumLimits]string{
	fairqueue.LimitRequests:     "Too many requests of the class %q are waiting. Please retry later.",
	fairqueue.LimitRawTokens:    "Too many tokens of prompts of the class %q are waiting. Please retry later.",
	fairqueue.LimitCachedTokens: "Too many cached tokens of prompts of the class %q are waiting. Please retry later.",
}
