package request

import "errors"

// The kinds of errors.
var (
	ErrMalformed   = errors.New("request: malformed")
	ErrTooLarge    = errors.New("request: too large")
	ErrEmptySubset = errors.New("the subset hint is empty")
)

// Error describes a fault of a request to its sender.
type Error struct {
	// Kind is ErrMalformed or ErrTooLarge.
	Kind error
	// Field is the header or the JSON field, or "" for the request as a whole.
	Field string
	// Message is a sentence for the sender.
	Message string
	// Limit is the field of Limits that the request exceeds, and Most its value; "" and 0 without one.
	Limit string
	Most  int64
}

// Error implements error.
func (e *Error) Error() string { return e.Message }

// Unwrap returns the kind.
func (e *Error) Unwrap() error { return e.Kind }

func malformed(field, message string) error {
	return &Error{Kind: ErrMalformed, Field: field, Message: message}
}

func tooLarge(limit string, most int64, message string) error {
	return &Error{Kind: ErrTooLarge, Message: message, Limit: limit, Most: most}
}
