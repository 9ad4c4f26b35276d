package extproc

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"

	"github.com/weir-epp/weir/pkg/flowcontrol"
	"github.com/weir-epp/weir/pkg/request"
)

// The headers of a rejection. Envoy's access log has the reason in %RESPONSE_CODE_DETAILS% as well.
const (
	reasonHeader        = "x-weir-reason"
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

// hopeless reports whether the same request would be rejected again. Without being told, real clients retry a 408, and
// send as slowly as before.
func hopeless(o flowcontrol.Outcome) bool {
	switch o {
	case flowcontrol.OutcomeBadRequest, flowcontrol.OutcomeTooLarge, flowcontrol.OutcomeBodyTimeout,
		flowcontrol.OutcomeUnknownModel:
		return true
	default:
		return false
	}
}

// rejectionOf returns err as a rejection. The controller's errors are rejections already.
func rejectionOf(err error) *flowcontrol.Rejection {
	if rej := new(flowcontrol.Rejection); errors.As(err, &rej) {
		return rej
	}
	return &flowcontrol.Rejection{Err: err, Outcome: flowcontrol.OutcomeOf(err)}
}

// preemption returns a lease's error as a rejection that says when to come back. A nil error is a preemption too: the
// lease's channel was closed, whatever the lease says now.
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

// openAIError is the body of an error in OpenAI's API.
type openAIError struct {
	Error struct {
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Code    string  `json:"code"`
		Param   *string `json:"param"`
	} `json:"error"`
}

// anthropicError is the body of an error in Anthropic's API.
type anthropicError struct {
	Type  string `json:"type"`
	Error struct {
		Type    string `json:"type"`
		Message string `json:"message"`
		Code    string `json:"code"`
	} `json:"error"`
}

func (r *rejections) body(rej *flowcontrol.Rejection, shape request.API) []byte {
	o := rej.Outcome
	code := o.String()
	if c, ok := r.codes[o]; ok {
		code = c
	}
	var b []byte
	if shape == request.Anthropic {
		e := anthropicError{Type: "error"}
		e.Error.Type, e.Error.Message, e.Error.Code = anthropicType(r.status[o]), message(rej), code
		b, _ = json.Marshal(e) // marshalling strings cannot fail
	} else {
		var e openAIError
		e.Error.Message, e.Error.Type, e.Error.Code = message(rej), openAIType(r.status[o]), code
		if f := new(fieldError); errors.As(rej.Err, &f) && f.field != "" {
			e.Error.Param = &f.field
		}
		b, _ = json.Marshal(e)
	}
	return b
}

// openAIType returns the type of an error with this status in OpenAI's API.
func openAIType(status int) string {
	switch {
	case status == 429:
		return "rate_limit_error"
	case status >= 500:
		return "server_error"
	default:
		return "invalid_request_error"
	}
}

// anthropicType returns the type of an error with this status in Anthropic's API.
func anthropicType(status int) string {
	switch {
	case status == 404:
		return "not_found_error"
	case status == 413:
		return "request_too_large"
	case status == 429:
		return "rate_limit_error"
	case status == 504:
		return "timeout_error"
	case status == 503 || status == 529:
		return "overloaded_error"
	case status >= 500:
		return "api_error"
	default:
		return "invalid_request_error"
	}
}

// messages are for users, unless the error has a message of its own.
var messages = [flowcontrol.NumOutcomes]string{
	flowcontrol.OutcomeFlowFull:         "Too many of your requests are waiting. Please retry later.",
	flowcontrol.OutcomeQueueFull:        "Too many requests are waiting. Please retry later.",
	flowcontrol.OutcomeShed:             "The service is busy and this request may be shed. Please retry later.",
	flowcontrol.OutcomeDisplaced:        "The request was displaced from the queue by a more entitled one. Please retry later.",
	flowcontrol.OutcomeTTLExpired:       "The request waited too long in the queue. Please retry later.",
	flowcontrol.OutcomePreempted:        "The request was preempted in favour of one of higher priority. Please retry.",
	flowcontrol.OutcomeClientCancelled:  "The client closed the request.",
	flowcontrol.OutcomeDeadlineExceeded: "The request's deadline passed before it could be served.",
	flowcontrol.OutcomeNoEndpoint:       "No model server can take the request.",
	flowcontrol.OutcomeDraining:         "The service is shutting down. Please retry.",
	flowcontrol.OutcomeBadRequest:       "The request is malformed.",
	flowcontrol.OutcomeTooLarge:         "The request is too large.",
	flowcontrol.OutcomeBodyTimeout:      "The request body did not arrive in time.",
	flowcontrol.OutcomeNoMemory:         "Too many request bodies are on their way. Please retry later.",
	flowcontrol.OutcomeInternal:         "Internal error.",
	flowcontrol.OutcomeUnknownModel:     "No model server serves this model.",
}

// fieldError tells the sender of a request its fault.
type fieldError struct {
	sentinel error  // of the outcome
	field    string // the JSON field, or "" for the request as a whole
	message  string
}

func (e *fieldError) Error() string { return e.message }
func (e *fieldError) Unwrap() error { return e.sentinel }

// refusalOf returns the fault of a request as an error with the sentinel of its outcome.
func refusalOf(err error) error {
	if e := new(request.Error); errors.As(err, &e) {
		f := &fieldError{sentinel: flowcontrol.ErrBadRequest, field: e.Field, message: e.Message}
		if errors.Is(e, request.ErrTooLarge) {
			f.sentinel = flowcontrol.ErrTooLarge
		}
		return f
	}
	if errors.Is(err, request.ErrEmptySubset) {
		return fmt.Errorf("extproc: %w: %w", err, flowcontrol.ErrNoEndpoint)
	}
	return err
}

// unplaceable returns the error for a request that no endpoint can ever take: unknown-model if no endpoint lists its
// model and the configuration does not name it, else no-endpoint, since one may come for a model that the operator knows.
func unplaceable(err error, model string, named bool) error {
	switch {
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

// message returns the text of a rejection. It shows only errors that the sender can mend.
func message(rej *flowcontrol.Rejection) string {
	if f := new(fieldError); errors.As(rej.Err, &f) {
		return f.message
	}
	return messages[rej.Outcome]
}

// flowFull are the messages for a full flow that is not the caller's own: most of the requests that wait there are
// others'.
var flowFull = map[request.Sharing]string{
	request.OfModel:     "Too many requests without a tenant are waiting for this model. Please retry later.",
	request.OfModelAll:  "Too many requests are waiting for this model. Please retry later.",
	request.OfAnonymous: "Too many requests without a tenant are waiting. Please retry later.",
}

const onlyFlowFull = "Too many requests from all callers are waiting. Please retry later."

// wordedForCaller returns the rejection with a message that says whose flow is full, if it is not the caller's own: a
// caller that asks for the first time has no requests waiting.
func (st *mainStream) wordedForCaller(rej *flowcontrol.Rejection) *flowcontrol.Rejection {
	if rej.Outcome != flowcontrol.OutcomeFlowFull {
		return rej
	}
	text := onlyFlowFull
	if !st.cfg.OneFlow {
		if text = flowFull[st.request.Sharing()]; text == "" {
			return rej
		}
	}
	told := *rej
	told.Err = &fieldError{sentinel: rej.Err, message: text}
	return &told
}
