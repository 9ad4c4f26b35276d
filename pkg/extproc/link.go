package extproc

import (
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"github.com/weir-epp/weir/pkg/request"
)

// A request's ID travels in this field of dynamic metadata, which no client can write: the answer to the main filter sets
// it (receiving_namespaces.untyped: [weir]), and the gate's first message returns it (forwarding_namespaces).
const (
	weirNamespace = "weir"
	linkKey       = "id"
)

// link is the common knowledge of a request's main stream and its gate. It exists from the grant to the end of the main
// stream; a gate that has found it keeps it until its own end.
type link struct {
	// Immutable.
	id        string
	lease     Lease
	picked    string // the first endpoint of the destination
	begun     time.Time
	shape     request.API
	responses bool // the request is for /v1/responses

	// served is the address of the endpoint that served, if it is not the one picked; nil otherwise.
	served atomic.Pointer[string]
	// over is set once anything that passes the gate is Weir's own rejection.
	over atomic.Bool
	// answered is the status of the response that reached the gate, plus 1; 0 if none did.
	answered atomic.Int32
}

// status returns the status of the response that reached the gate, and reports whether one did.
func (l *link) status() (status int, ok bool) {
	n := l.answered.Load()
	return int(n) - 1, n != 0
}

// setServed records the endpoint that served. The argument escapes, so that only this rare case allocates.
func (l *link) setServed(address string) { l.served.Store(&address) }

// links finds a request in flight by its ID.
type links struct {
	mu   sync.Mutex
	byID map[string]*link
}

// add gives l an ID and keeps it. An ID is 128 random bits: none can be guessed, and no two replicas use the same one.
func (r *links) add(l *link) {
	var b [33]byte
	l.id = string(strconv.AppendUint(append(strconv.AppendUint(b[:0], rand.Uint64(), 16), '-'), rand.Uint64(), 16))
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byID == nil {
		r.byID = map[string]*link{}
	}
	r.byID[l.id] = l
}

// find returns the link with the given ID, or nil.
func (r *links) find(id string) *link {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.byID[id]
}

func (r *links) remove(l *link) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.byID, l.id)
}

// linkID returns the ID in the first message of a gate, or "".
func linkID(m *corev3.Metadata) string {
	return m.GetFilterMetadata()[weirNamespace].GetFields()[linkKey].GetStringValue()
}

// linkToGate gives a granted request an ID for its gate. A request that can be preempted always gets one, because a gate
// could not hold its response otherwise (ADR 0024); the others get one if there seems to be a gate. In
// FULL_DUPLEX_STREAMED no request needs one, because the main stream sees the first token itself. The caller has set
// st.preempted.
func (st *mainStream) linkToGate() {
	if st.lease == nil || st.modes.echoesResponse() || st.preempted == nil && !st.server.presence.likely() {
		return
	}
	picked, _ := st.placement.Chosen()
	st.link = &link{
		picked: picked,
		lease:  st.lease, begun: st.begun, shape: st.request.ErrorShape(), responses: st.request.IsResponses(),
	}
	st.server.links.add(st.link)
}

// unlink removes the link and notes whether the response came through a gate.
func (st *mainStream) unlink() {
	l := st.link
	if l == nil {
		return
	}
	st.server.links.remove(l)
	status, came := l.status()
	switch {
	case came:
		st.server.presence.passed()
		if st.completion.Status == 0 {
			st.completion.Status = status
		}
	case !l.over.Load() && (st.state == responding || st.state == placedNoHeaders):
		st.server.presence.missed()
	}
}
