package status

import (
	"context"
	"io"
	"net/url"
	"strings"
)

// UnreachableError is the error for a replica that does not answer, or refuses the request.
type UnreachableError struct{ cause error }

func (e *UnreachableError) Error() string { return e.cause.Error() }

// Unwrap returns the cause.
func (e *UnreachableError) Unwrap() error { return e.cause }

// Tail opens one replica's tail: lines of JSON, each an Ended. An empty flow means all flows, and no outcomes all
// outcomes.
func Tail(ctx context.Context, address, flow string, outcomes []string) (io.ReadCloser, error) {
	v := url.Values{}
	if flow != "" {
		v.Set("flow", flow)
	}
	if len(outcomes) > 0 {
		v.Set("outcome", strings.Join(outcomes, ","))
	}
	body, err := open(ctx, address, "/debug/tail", v)
	if err != nil {
		return nil, &UnreachableError{ofDebugPort(err)}
	}
	return body, nil
}
