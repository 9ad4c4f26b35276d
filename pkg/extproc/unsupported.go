package extproc

import (
	"fmt"
	"strings"

	"github.com/weir-epp/weir/pkg/flowcontrol"
)

// UnsupportedError is the error for a request whose needs are not met by any endpoint with its model, ready or not.
type UnsupportedError struct {
	// Needs are the names of the unmet needs, and Tag is the error's code for the client.
	Needs []string
	Tag   string
}

// Error returns the message for the client.
func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("No model server that serves the model supports %s.", strings.Join(e.Needs, " and "))
}

// Unwrap returns the sentinel of the outcome.
func (e *UnsupportedError) Unwrap() error { return flowcontrol.ErrUnsupported }
