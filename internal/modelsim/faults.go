package modelsim

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// FaultsPath is the path for faults at a server with [Config.Faults]: POST adds one, GET lists those in force, DELETE
// ends all.
const FaultsPath = "/debug/faults"

// mostFaults is the largest number of faults in force at once, and mostFaultBytes the longest text of one.
const (
	mostFaults     = 100
	mostFaultBytes = 64 << 10
)

// longestDelay bounds Fault.Delay.
const longestDelay = 24 * time.Hour

// Fault is the form of a [Quirk] for clients of FaultsPath. At least one of Status, Delay and Reset is given.
type Fault struct {
	// Requests is the number of next inference requests that it applies to; 0: all, until it is deleted.
	Requests int `json:"requests,omitempty"`
	// Status is the answer's status, without any work, 200 to 599.
	Status int `json:"status,omitempty"`
	// Delay is the time before the answer's beginning, "90s" for example, at most 24h. The request holds no slot
	// meanwhile, so a long delay simulates a hung engine.
	Delay string `json:"delay,omitempty"`
	// Reset breaks the connection: "before-headers" or "mid-answer".
	Reset string `json:"reset,omitempty"`
	// Header is added to the answer's headers: Retry-After, for example.
	Header map[string]string `json:"header,omitempty"`
}

// resetNames are the values of Fault.Reset, by Reset.
var resetNames = [...]string{"", "before-headers", "mid-answer"}

// quirk returns the fault as a quirk. The error lists all problems.
func (f *Fault) quirk() (Quirk, error) {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	q := Quirk{Status: f.Status}
	if f.Requests < 0 {
		bad("requests: %d: must be at least 0", f.Requests)
	}
	if f.Status != 0 && (f.Status < 200 || f.Status > 599) {
		bad("status: %d: must be from 200 to 599", f.Status)
	}
	if f.Delay != "" {
		delay, err := time.ParseDuration(f.Delay)
		if err != nil || delay <= 0 || delay > longestDelay {
			bad("delay: %q: must be a duration such as 90s, above 0s and at most %v", f.Delay, longestDelay)
		}
		q.HeaderDelay = delay
	}
	known := false
	for reset, name := range resetNames {
		if f.Reset == name {
			q.Reset, known = Reset(reset), true
		}
	}
	if !known {
		bad("reset: %q: must be before-headers or mid-answer", f.Reset)
	}
	if f.Status == 0 && f.Delay == "" && f.Reset == "" && len(f.Header) == 0 {
		bad("it has no effect: give a status, delay, reset or header")
	}
	for name, value := range f.Header {
		if q.Header == nil {
			q.Header = http.Header{}
		}
		q.Header.Set(name, value)
	}
	return q, errors.Join(errs...)
}

// serveFaults serves FaultsPath.
func (h *Handler) serveFaults(w http.ResponseWriter, r *http.Request) {
	w.Header()["Content-Type"] = jsonType
	switch r.Method {
	case http.MethodGet:
		_ = json.NewEncoder(w).Encode(h.faults())
	case http.MethodDelete:
		h.quirkMu.Lock()
		h.quirks = nil
		h.quirky.Store(false)
		h.quirkMu.Unlock()
		w.WriteHeader(http.StatusNoContent)
	case http.MethodPost:
		if err := h.addFault(http.MaxBytesReader(w, r.Body, mostFaultBytes)); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = fmt.Fprintf(w, `{"error":%s}`+"\n", quoted(err.Error()))
			return
		}
		w.WriteHeader(http.StatusNoContent)
	default:
		w.WriteHeader(http.StatusMethodNotAllowed)
	}
}

// addFault adds a fault.
func (h *Handler) addFault(body io.Reader) error {
	var f Fault
	d := json.NewDecoder(body)
	d.DisallowUnknownFields()
	if err := d.Decode(&f); err != nil {
		return err
	}
	q, err := f.quirk()
	if err != nil {
		return err
	}
	h.quirkMu.Lock()
	full := len(h.quirks) >= mostFaults
	h.quirkMu.Unlock()
	if full {
		return fmt.Errorf("%d faults are in force: delete them first", mostFaults)
	}
	n := f.Requests
	if n == 0 {
		n = -1
	}
	h.Inject(n, q)
	return nil
}

// faults returns the faults in force, in their order.
func (h *Handler) faults() []Fault {
	h.quirkMu.Lock()
	defer h.quirkMu.Unlock()
	list := []Fault{}
	for _, q := range h.quirks {
		f := Fault{Requests: max(0, q.left), Status: q.Status, Reset: resetNames[q.Reset]}
		if q.HeaderDelay > 0 {
			f.Delay = q.HeaderDelay.String()
		}
		for name := range q.Header {
			if f.Header == nil {
				f.Header = map[string]string{}
			}
			f.Header[name] = q.Header.Get(name)
		}
		list = append(list, f)
	}
	return list
}
