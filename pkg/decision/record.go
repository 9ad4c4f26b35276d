package decision

import (
	"encoding/json"

	"github.com/weir-epp/weir/internal/printable"
	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/scheduling"
)

// Record is the record of one decision. It is also JSON.
type Record struct {
	// ID is the request's x-request-id, which a client may have chosen; it may be empty.
	ID string `json:"id,omitempty"`
	// Model is the engines' name of the request's model; empty: unknown.
	Model string `json:"model,omitempty"`
	// Outcome is the request's outcome, or "waiting" or "in flight", and Endpoint its endpoint.
	Outcome  string `json:"outcome"`
	Endpoint string `json:"endpoint,omitempty"`
	// RetryAfter is the Retry-After sent to its client, in seconds; 0: none.
	RetryAfter float64 `json:"retryAfterSeconds,omitempty"`
	dispatch.Facts
	// Placement is the comparison of the endpoints; nil without one.
	Placement *scheduling.Decision `json:"placement,omitempty"`
}

// The outcomes of requests that have not ended.
const (
	Waiting  = "waiting"
	InFlight = "in flight"
)

// JSON returns the record on one line.
func (r *Record) JSON() []byte {
	text, err := json.Marshal(r)
	if err != nil {
		panic(err) // JSON has a form for all its fields
	}
	return printable.JSON(text)
}

// ForClient returns the record without the holdings of other tenants.
func (r *Record) ForClient() Record {
	c := *r
	if l := c.Limit; l != nil {
		c.Limit = &dispatch.Limit{Name: l.Name}
	}
	return c
}

// Short returns the JSON of the record in at most most bytes of ASCII, for a header, with as many candidates as fit,
// the chosen one first. It returns "" if the rest does not fit.
func (r *Record) Short(most int) string {
	c := *r
	var p scheduling.Decision
	if r.Placement != nil {
		p = *r.Placement
		p.Candidates = chosenFirst(p.Candidates, p.Chosen)
		c.Placement = &p
	}
	for {
		text := ascii(c.JSON())
		if len(text) <= most {
			return text
		}
		n := len(p.Candidates)
		if n == 0 {
			return ""
		}
		fewer := max(0, min(n-1, n*most/len(text)))
		p.Candidates, p.More = p.Candidates[:fewer], p.More+n-fewer
	}
}

// chosenFirst returns the candidates with the chosen one first.
func chosenFirst(of []scheduling.Candidate, chosen string) []scheduling.Candidate {
	for i := range of {
		if of[i].Address != chosen {
			continue
		}
		first := append(make([]scheduling.Candidate, 0, len(of)), of[i])
		return append(append(first, of[:i]...), of[i+1:]...)
	}
	return of
}
