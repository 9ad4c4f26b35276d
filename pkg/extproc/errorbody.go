package extproc

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/weir-epp/weir/pkg/flowcontrol"
	"github.com/weir-epp/weir/pkg/request"
)

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

// body returns the body of a rejection in the shape of an API's errors.
func (p *preset) body(rej *flowcontrol.Rejection, shape request.API) []byte {
	if limit := limitOf(rej); limit != nil && p.tellsLimits {
		return bodyOfLimit(limit)
	}
	o := rej.Outcome
	code := o.String()
	if c, ok := p.codes[o]; ok {
		code = c
	}
	f := new(fieldError)
	if errors.As(rej.Err, &f) && f.code != "" {
		code = f.code
	}
	var b []byte
	if shape == request.Anthropic {
		e := anthropicError{Type: "error"}
		e.Error.Type, e.Error.Message, e.Error.Code = anthropicType(p.status[o]), message(rej), code
		b, _ = json.Marshal(e) // marshalling strings cannot fail
	} else {
		var e openAIError
		e.Error.Message, e.Error.Type, e.Error.Code = message(rej), openAIType(p.status[o]), code
		if f.field != "" {
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

// messages are the messages for users of errors without a message of their own.
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
	flowcontrol.OutcomeQuotaExceeded:    "Your quota of tokens has no room for this request now. Please retry later.",
	flowcontrol.OutcomeUnsupported:      "No model server meets the needs of the request.",
}

// message returns the text of a rejection. It shows only errors that the sender can correct.
func message(rej *flowcontrol.Rejection) string {
	if f := new(fieldError); errors.As(rej.Err, &f) {
		return f.message
	}
	if limit := limitOf(rej); limit != nil {
		return fmt.Sprintf(limitMessages[limit.Limit], limit.Class)
	}
	return messages[rej.Outcome]
}

// fieldError describes a fault of a request to its sender.
type fieldError struct {
	sentinel error  // of the outcome
	field    string // the JSON field, or "" for the request as a whole
	message  string
	code     string // in place of the outcome's, or ""
}

func (e *fieldError) Error() string { return e.message }
func (e *fieldError) Unwrap() error { return e.sentinel }
