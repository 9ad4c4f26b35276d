package extproc

import (
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
)

// Where the request's name stands in dynamic metadata, which no client can write: the main filter's answer sets it
// (receiving_namespaces.untyped: [weir]), and the gate's first message brings it back (forwarding_namespaces).
const (
	tieNamespace = "weir"
	tieKey       = "id"
)

// tie is what a request's main stream and its gate's stream know of each other. It is made when the request is granted
// and forgotten when the main stream ends; a gate's stream that has found it keeps it for its own life.
type tie struct {
	// Immutable.
	id        string
	lease     Lease
	picked    string // the destination's first endpoint
	begun     time.Time
	shape     api
	responses bool // the request is one to /v1/responses

	// served is the endpoint that has served, if it is another than picked; "" or nil: it is not.
	served atomic.Pointer[string]
	// over says that what passes the gate from now on is our own rejection.
	over atomic.Bool
	// answered is the status of the answer that came to the gate, plus 1; 0: none came.
	answered atomic.Int32
}

// status is the status that the gate has seen; false: no answer has come to it.
func (t *tie) status() (int, bool) {
	n := t.answered.Load()
	return int(n) - 1, n != 0
}

// servedAt notes the endpoint that has served. It has a copy of its own, so that the usual case allocates none.
func (t *tie) servedAt(address string) { t.served.Store(&address) }

// ties finds the tie of a request by its name. There is one for each request that is in flight and was given a name.
type ties struct {
	mu   sync.Mutex
	byID map[string]*tie
}

// add gives t a name and keeps it. The name is 128 random bits: nobody guesses it, and no two replicas share one.
func (r *ties) add(t *tie) {
	var b [33]byte
	t.id = string(strconv.AppendUint(append(strconv.AppendUint(b[:0], rand.Uint64(), 16), '-'), rand.Uint64(), 16))
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byID == nil {
		r.byID = map[string]*tie{}
	}
	r.byID[t.id] = t
}

// find is the tie of that name, or nil.
func (r *ties) find(id string) *tie {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.byID[id]
}

func (r *ties) remove(t *tie) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.byID, t.id)
}

// len is the number of requests that have a name.
func (r *ties) len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.byID)
}

// tieID is the name that a gate's first message brings, or "".
func tieID(m *corev3.Metadata) string {
	return m.GetFilterMetadata()[tieNamespace].GetFields()[tieKey].GetStringValue()
}

// tieUp gives the granted request a name for its gate: always if it can be preempted, since a gate that was not seen yet
// could not hold it otherwise; else if there seems to be one. In FULL_DUPLEX_STREAMED the main stream sees the first
// token itself. The caller has set st.preempted.
func (st *stream) tieUp() {
	if st.lease == nil || st.modes.echoesResponse() || st.preempted == nil && !st.server.presence.likely() {
		return
	}
	picked, _ := st.placement.Chosen()
	st.tie = &tie{
		picked: picked,
		lease:  st.lease, begun: st.begun, shape: st.errorShape(), responses: isResponses(st.headers.values[slotPath]),
	}
	st.server.ties.add(st.tie)
}

// untie forgets the request's name, and notes whether its answer came by a gate.
func (st *stream) untie() {
	t := st.tie
	if t == nil {
		return
	}
	st.server.ties.remove(t)
	status, came := t.status()
	switch {
	case came:
		st.server.presence.passed()
		if st.status == 0 {
			st.status = status
		}
	case !t.over.Load() && (st.state == responding || st.skipsHeaders):
		st.server.presence.missed()
	}
}
