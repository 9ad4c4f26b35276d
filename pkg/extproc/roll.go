package extproc

import (
	"container/list"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// The bounds of waiting for records. The last dispatch.MostLate requests can be corrected after their end, and those that
// await no record count as well: so half as many wait, and one that is crowded out is still among them.
const (
	// recordWait is how long the record of a request that has ended is awaited. Envoy sends what it has logged within a
	// second, unless it is configured otherwise (buffer_flush_interval).
	recordWait = 5 * time.Second
	// maxAwaited is how many requests await their records at a time. When one more does, the first one's wait ends.
	maxAwaited = 4096
	// recordsLately is how long after a record of a request of ours more are expected (UsageAuto).
	recordsLately = time.Minute
	// probeEvery is how many requests there are for each one that is named to find out whether records come (UsageAuto).
	probeEvery = 64
)

// inLog is a request that a record of Envoy's access log can name: from its grant until its record has come, or is awaited
// no longer.
type inLog struct {
	// Immutable.
	id         string
	lease      Lease
	promptOnly bool // its answer has no output

	// Guarded by the roll's mu.
	record *record       // that came before the request's end; nil if none did
	ending *ending       // once the record is awaited
	until  time.Time     // when the wait ends
	place  *list.Element // among those that wait
}

// roll has the requests that a record of Envoy's access log can name. The record of a request comes before or after the
// end of its stream, once or never; the request is charged once, with the first of: its record, the end of the wait, and
// being crowded out by more than maxAwaited requests that ended later.
type roll struct {
	// Immutable.
	replica string // what the IDs of this replica begin with
	// charge charges a request whose wait is over. The record is nil if none has come. It is called without mu.
	charge func(*inLog, *record)

	lately atomic.Int64 // when a record of a request of ours came last, in nanoseconds since 1970
	probes atomic.Uint64

	mu      sync.Mutex
	byID    map[string]*inLog
	waiting list.List // of *inLog, in the order of their ends
	timer   *time.Timer
}

// newReplica returns what the IDs of one process begin with, so that those of another can be told from them.
func newReplica() string { return strconv.FormatUint(rand.Uint64()>>16, 16) + "." }

// add names a request: with 128 random bits that nobody can guess.
func (r *roll) add(l Lease, promptOnly bool) *inLog {
	b := make([]byte, 0, 48)
	b = append(b, r.replica...)
	b = strconv.AppendUint(b, rand.Uint64(), 16)
	b = strconv.AppendUint(append(b, '-'), rand.Uint64(), 16)
	q := &inLog{id: string(b), lease: l, promptOnly: promptOnly}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byID == nil {
		r.byID = make(map[string]*inLog)
	}
	r.byID[q.id] = q
	return q
}

// wanted reports whether a request is to be named if nobody has said that records come: while they do, and now and then to
// find out.
func (r *roll) wanted() bool { return r.comes() || r.probes.Add(1)%probeEvery == 1 }

// comes reports whether a record of a request of ours came lately.
func (r *roll) comes() bool {
	at := r.lately.Load()
	return at != 0 && time.Since(time.Unix(0, at)) < recordsLately
}

// take takes a record, and returns the request that needs it. Without one it reports whether the request is another
// replica's (elsewhere), or was charged before.
func (r *roll) take(id string, rec *record) (of *inLog, elsewhere bool) {
	if !strings.HasPrefix(id, r.replica) {
		return nil, true
	}
	r.lately.Store(time.Now().UnixNano())
	r.mu.Lock()
	q := r.byID[id]
	if q == nil || q.record != nil { // only the first one counts
		r.mu.Unlock()
		return nil, false
	}
	if q.ending == nil { // its stream has not ended
		q.record = rec
		r.mu.Unlock()
		return q, false
	}
	r.drop(q)
	r.mu.Unlock()
	r.charge(q, rec)
	return q, false
}

// await waits for the record of a request that has ended, and whose lease is settled.
func (r *roll) await(q *inLog, e *ending) {
	r.mu.Lock()
	if rec := q.record; rec != nil { // it came just now
		r.drop(q)
		q.ending = e
		r.mu.Unlock()
		r.charge(q, rec)
		return
	}
	var first *inLog
	if r.waiting.Len() >= maxAwaited {
		first = r.waiting.Front().Value.(*inLog)
		r.drop(first)
	}
	q.ending, q.until = e, time.Now().Add(recordWait)
	q.place = r.waiting.PushBack(q)
	if r.waiting.Len() == 1 {
		r.arm(recordWait)
	}
	r.mu.Unlock()
	if first != nil {
		r.charge(first, nil)
	}
}

// remove removes a request that needs no record. It is idempotent.
func (r *roll) remove(q *inLog) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drop(q)
}

// drop removes a request. The caller holds r.mu.
func (r *roll) drop(q *inLog) {
	delete(r.byID, q.id)
	if q.place != nil {
		r.waiting.Remove(q.place)
		q.place = nil
	}
}

// arm sets the timer. The caller holds r.mu.
func (r *roll) arm(after time.Duration) {
	if r.timer == nil {
		r.timer = time.AfterFunc(after, r.expire)
		return
	}
	r.timer.Reset(after)
}

// expire charges those whose wait is over.
func (r *roll) expire() {
	var over []*inLog
	r.mu.Lock()
	for front := r.waiting.Front(); front != nil; front = r.waiting.Front() {
		q := front.Value.(*inLog)
		if left := time.Until(q.until); left > 0 {
			r.arm(left)
			break
		}
		r.drop(q)
		over = append(over, q)
	}
	r.mu.Unlock()
	for _, q := range over {
		r.charge(q, nil)
	}
}

// awaited returns how many requests that have ended await their records.
func (r *roll) awaited() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.waiting.Len()
}
