package chart

import (
	"io"
	"net/http"
	"sync"
)

// heldEngine answers at once, unless it holds requests.
type heldEngine struct {
	mu       sync.Mutex
	gate     chan struct{} // nil: open; guarded by mu
	requests int           // requests so far, guarded by mu
}

func (e *heldEngine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		http.NotFound(w, r)
		return
	}
	_, _ = io.Copy(io.Discard, r.Body)
	e.mu.Lock()
	e.requests++
	gate := e.gate
	e.mu.Unlock()
	if gate != nil {
		select {
		case <-gate:
		case <-r.Context().Done():
		}
	}
	w.Header().Set("content-type", "application/json")
	_, _ = io.WriteString(w, `{"choices":[{"text":"Hello"}],"usage":{"prompt_tokens":1,"completion_tokens":1}}`)
}

// count returns the number of requests so far.
func (e *heldEngine) count() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.requests
}

func (e *heldEngine) hold() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.gate = make(chan struct{})
}

// passOne lets one of the held requests go.
func (e *heldEngine) passOne() {
	e.mu.Lock()
	gate := e.gate
	e.mu.Unlock()
	gate <- struct{}{}
}

// pass lets all requests go.
func (e *heldEngine) pass() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.gate != nil {
		close(e.gate)
		e.gate = nil
	}
}
