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

// link is the shared state of a request's main stream and its gate. It exists from the grant to the end of the main
// stream; a gate that has found it keeps it until its own end. The main stream's methods do nothing for a nil link.
type link struct {
	// Immutable.
	id        string
	lease     Lease
	picked    string // the first endpoint of the destination
	begun     time.Time
	shape     request.API
	responses bool // the request is for /v1/responses

	// served is the address of the serving endpoint if it is not the picked one; otherwise nil.
	served atomic.Pointer[string]
	// over is set once the response at the gate can only be Weir's own rejection.
	over atomic.Bool
	// answered is the status of the response at the gate, plus 1; 0 if there was none.
	answered atomic.Int32
}

// status returns the status of the response at the gate, and reports whether there was one.
func (l *link) status() (status int, ok bool) {
	if l == nil {
		return 0, false
	}
	n := l.answered.Load()
	return int(n) - 1, n != 0
}

// reject notes that a later response at the gate is Weir's own rejection.
func (l *link) reject() {
	if l != nil {
		l.over.Store(true)
	}
}

// elsewhere returns the serving endpoint seen by the gate, if it is not the picked one.
func (l *link) elsewhere() string {
	if l != nil {
		if served := l.served.Load(); served != nil {
			return *served
		}
	}
	return ""
}

// setServed records the endpoint that served. The argument escapes, so that only this rare case allocates.
func (l *link) setServed(address string) { l.served.Store(&address) }

// links finds a request in flight by its ID, and estimates whether there is a gate.
type links struct {
	presence presence

	mu   sync.Mutex
	byID map[string]*link // guarded by mu
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

// open gives a granted request an ID for its gate, or returns nil if it needs none. A preemptible request always gets
// an ID, because a gate could not hold its response otherwise (ADR 0024); other requests get one if there seems to be a
// gate.
func (r *links) open(g *grant, q *request.Request, begun time.Time) *link {
	if g.lease == nil || g.preempted == nil && !r.presence.likely() {
		return nil
	}
	l := &link{picked: g.picked, lease: g.lease, begun: begun, shape: q.ErrorShape(), responses: q.IsResponses()}
	r.add(l)
	return l
}

// end removes a link, if any, and notes whether the response, if any, came through a gate. It returns the status seen
// by the gate, or 0.
func (r *links) end(l *link, responded bool) (status int) {
	if l == nil {
		return 0
	}
	r.remove(l)
	status, came := l.status()
	switch {
	case came:
		r.presence.passed()
		return status
	case responded && !l.over.Load():
		r.presence.missed()
	}
	return 0
}
