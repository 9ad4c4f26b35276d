package modelsim

import (
	"errors"
	"fmt"
	"net/http"
	"time"
)

// Reset is the point at which the server breaks the connection (HTTP/1.1) or the stream (HTTP/2) instead of answering.
type Reset uint8

// The points of a reset.
const (
	NoReset            Reset = iota
	ResetBeforeHeaders       // before any byte of the answer, without doing the work
	ResetMidAnswer           // after the first token's data of a stream, or half of a whole body
)

// Quirk is a deviation in the delivery of an answer. The zero value is a plain answer.
type Quirk struct {
	// Match selects the requests; nil selects all. It must not read the body.
	Match func(*http.Request) bool

	// HeaderDelay is the time between the arrival of the complete request and the start of its processing.
	HeaderDelay time.Duration

	// Status, if not zero, is the answer's status, without any work: 204 and 304 have no body, all others an error body
	// in the API's shape. Range 200 to 599.
	Status int

	// Header is added to the answer's headers.
	Header http.Header

	// Trailer is sent as the answer's trailers.
	Trailer http.Header

	// Reset breaks the connection instead of answering.
	Reset Reset

	// ChunkSizes, if not empty, cuts the answer's body into pieces of at most these sizes in bytes, repeatedly; each
	// piece is flushed. A piece does not wait for data that is not there yet.
	ChunkSizes []int

	// ChunkPause is the time between two such pieces.
	ChunkPause time.Duration
}

// injected is a quirk for the next matching requests.
type injected struct {
	left int // negative: unlimited
	Quirk
}

func (q *Quirk) validate() error {
	var errs []error
	if q.Status != 0 && (q.Status < 200 || q.Status > 599) {
		errs = append(errs, fmt.Errorf("modelsim: Quirk.Status is %d, want 200 to 599", q.Status))
	}
	if q.Reset > ResetMidAnswer {
		errs = append(errs, fmt.Errorf("modelsim: Quirk.Reset is %d, which is unknown", q.Reset))
	}
	for _, size := range q.ChunkSizes {
		if size < 1 {
			errs = append(errs, fmt.Errorf("modelsim: Quirk.ChunkSizes has %d, want 1 or more", size))
		}
	}
	return errors.Join(errs...)
}

// Inject applies the quirk to the next n matching inference requests; a negative n means to all of them from now on.
// Quirks injected earlier come first. A quirk with fields out of range panics.
func (h *Handler) Inject(n int, q Quirk) {
	if err := q.validate(); err != nil {
		panic(err)
	}
	if n == 0 {
		return
	}
	h.quirkMu.Lock()
	defer h.quirkMu.Unlock()
	h.quirks = append(h.quirks, &injected{left: n, Quirk: q})
	h.quirky.Store(true)
}

// quirkFor returns the request's quirk and uses up an injected one.
func (h *Handler) quirkFor(r *http.Request) *Quirk {
	if h.quirky.Load() {
		if q := h.takeInjected(r); q != nil {
			return q
		}
	}
	if h.cfg.Quirk.Match == nil || h.cfg.Quirk.Match(r) {
		return &h.cfg.Quirk
	}
	return &plain
}

func (h *Handler) takeInjected(r *http.Request) *Quirk {
	h.quirkMu.Lock()
	defer h.quirkMu.Unlock()
	for i, q := range h.quirks {
		if q.Match != nil && !q.Match(r) {
			continue
		}
		if q.left > 0 {
			q.left--
		}
		if q.left == 0 {
			h.quirks = append(h.quirks[:i:i], h.quirks[i+1:]...)
			h.quirky.Store(len(h.quirks) > 0)
		}
		return &q.Quirk
	}
	return nil
}

// plain is the delivery without quirks.
var plain Quirk
