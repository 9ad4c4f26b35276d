package extproc

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"

	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/flowcontrol"
	"github.com/weir-epp/weir/pkg/request"
)

// The headers of a rejection. Envoy's access log has the reason in %RESPONSE_CODE_DETAILS% as well.
const (
	reasonHeader = "x-weir-reason"
	// limitHeader has the name of the limit that rejected a request, without its value.
	limitHeader         = request.ControlPrefix + "limit"
	droppedReasonHeader = "x-llm-d-request-dropped-reason"
)

// rejections makes the replies that reject requests.
type rejections struct {
	preset
	headers [flowcontrol.NumOutcomes][]*corev3.HeaderValueOption // the headers that depend on the outcome alone
}

func newRejections(cfg Responses) rejections {
	r := rejections{preset: presets[cfg.Preset]}
	for reason, status := range cfg.Status {
		if o, ok := outcomeByReason(reason); ok {
			r.status[o] = status
		}
	}
	for o := range flowcontrol.Outcome(flowcontrol.NumOutcomes) {
		h := []*corev3.HeaderValueOption{
			setHeader("content-type", "application/json"),
			setHeader(reasonHeader, o.String()),
			setHeader(droppedReasonHeader, o.String()),
		}
		if hopeless(o) {
			h = append(h, setHeader("x-should-retry", "false"))
		}
		if o == flowcontrol.OutcomePreempted && r.preemptedHeader != "" {
			h = append(h, setHeader(r.preemptedHeader, "true"))
		}
		r.headers[o] = h
	}
	return r
}

// hopeless reports whether the same request would be rejected again. Real clients retry a 408 unless told not to, and
// send as slowly as before.
func hopeless(o flowcontrol.Outcome) bool {
	switch o {
	case flowcontrol.OutcomeBadRequest, flowcontrol.OutcomeTooLarge, flowcontrol.OutcomeBodyTimeout,
		flowcontrol.OutcomeUnknownModel, flowcontrol.OutcomeUnsupported:
		return true
	default:
		return false
	}
}

// rejectionOf returns err as a rejection. The controller's errors already are rejections.
func rejectionOf(err error) *flowcontrol.Rejection {
	if rej := new(flowcontrol.Rejection); errors.As(err, &rej) {
		return rej
	}
	return &flowcontrol.Rejection{Err: err, Outcome: flowcontrol.OutcomeOf(err)}
}

// preemption returns a lease's error as a rejection with a Retry-After. A nil error is a preemption, too, since the
// lease's channel was closed.
func preemption(err error) *flowcontrol.Rejection {
	if err == nil {
		err = flowcontrol.ErrPreempted
	}
	rej := *rejectionOf(err)
	if rej.RetryAfter <= 0 {
		rej.RetryAfter = time.Duration(1+rand.IntN(1000)) * time.Millisecond
	}
	return &rej
}

// reply returns the ImmediateResponse for rej, with its body in the shape of the given API's errors, and with further
// headers.
func (r *rejections) reply(rej *flowcontrol.Rejection, shape request.API, further ...*corev3.HeaderValueOption) *extprocv3.ProcessingResponse {
	o := rej.Outcome
	headers := r.headers[o]
	if rej.RetryAfter > 0 {
		seconds := (rej.RetryAfter + time.Second - 1) / time.Second
		millis := (rej.RetryAfter + time.Millisecond - 1) / time.Millisecond
		headers = append(slices.Clip(headers),
			setHeader("retry-after", strconv.FormatInt(int64(seconds), 10)),
			setHeader("retry-after-ms", strconv.FormatInt(int64(millis), 10)))
	}
	if len(further) > 0 {
		headers = append(slices.Clip(headers), further...)
	}
	return &extprocv3.ProcessingResponse{Response: &extprocv3.ProcessingResponse_ImmediateResponse{
		ImmediateResponse: &extprocv3.ImmediateResponse{
			Status:  &typev3.HttpStatus{Code: typev3.StatusCode(r.status[o])},
			Headers: &extprocv3.HeaderMutation{SetHeaders: headers},
			Body:    r.body(rej, shape),
			Details: o.String(),
		},
	}}
}

// limitNames are the names of the limits that a single request can exceed.
var limitNames = map[string]string{
	"MaxHeaders": dispatch.LimitMaxHeaders, "MaxHeaderBytes": dispatch.LimitMaxHeaderBytes, "MaxBodyBytes": dispatch.LimitMaxBodyBytes,
}

// refusalOf returns the fault of a request as an error with the sentinel of its outcome.
func refusalOf(err error) error {
	if e := new(request.Error); errors.As(err, &e) {
		f := &fieldError{sentinel: flowcontrol.ErrBadRequest, field: e.Field, message: e.Message}
		if errors.Is(e, request.ErrTooLarge) {
			f.sentinel = flowcontrol.ErrTooLarge
			return &flowcontrol.LimitedError{Name: limitNames[e.Limit], Value: e.Most, Err: f}
		}
		return f
	}
	if errors.Is(err, request.ErrEmptySubset) {
		return fmt.Errorf("extproc: %w: %w", err, flowcontrol.ErrNoEndpoint)
	}
	return err
}

// unplaceable returns the error for a request that no endpoint can ever take: unsupported if none meets its needs;
// unknown-model if no endpoint lists its model and the configuration does not name it; otherwise no-endpoint, since an
// endpoint may still come for a configured model.
func unplaceable(err error, model string, named bool) error {
	unsupported := new(UnsupportedError)
	switch {
	case errors.As(err, &unsupported):
		return &fieldError{sentinel: flowcontrol.ErrUnsupported, code: unsupported.Tag, message: unsupported.Error()}
	case !errors.Is(err, flowcontrol.ErrUnknownModel):
		return fmt.Errorf("%w: %w", flowcontrol.ErrNoEndpoint, err)
	case named:
		return fmt.Errorf("%w: %s", flowcontrol.ErrNoEndpoint, err.Error())
	}
	return &fieldError{
		sentinel: flowcontrol.ErrUnknownModel, field: "model",
		message: fmt.Sprintf("No model server serves the model %q.", model),
	}
}
