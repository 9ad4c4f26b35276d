package leader

import (
	"cmp"
	"maps"
	"math/bits"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// fallSteps is the number of steps in which a record falls to 0.
const fallSteps = 60

// Bounds of the memory: processes of one replica, and replicas, including those whose Leases are gone.
const (
	maxProcesses  = 8
	maxRemembered = 4 * maxReplicas
)

// forgetAfter, and five takeover windows, is the time for which a replica's unchanged Lease is kept. Every replica
// renews its own within MaxLeaseDuration.
const forgetAfter = 2 * MaxLeaseDuration

// Annotation is the annotation of a replica's Lease with its record.
const Annotation = "weir.dev/in-flight"

// Endpoint is an endpoint of the reader's pool.
type Endpoint struct {
	Key string
	// Bound is its part of the pool's upper bound, at least 0, in any unit. Totals are spread by it.
	Bound int64
	// Most is its upper bound in both units, or 0 for none. It caps the stock counted there from records.
	Most Held
}

// Held has the requests in flight at an endpoint.
type Held struct {
	Requests int
	Tokens   int64
}

// foreign has the requests in flight of other processes, from their records. It is a pure state machine.
type foreign struct {
	window   time.Duration
	boot     string // of this process, whose own record does not count
	replicas map[string]*replica
}

// replica is the state of a Lease of a replica.
type replica struct {
	id        metav1.ObjectMeta // name, UID and version, as last seen
	there     bool              // it was listed last time
	changed   time.Time         // when this version was first seen
	draining  bool              // another, stopping process has written the record
	text      string            // the record, as last seen
	processes map[string]process
}

// process is the last record of one process, identified by its boot ID.
type process struct {
	InFlight
	keys   []string  // of ByEndpoint, sorted
	listed int       // their sum
	seen   time.Time // when it was first seen, or could have been
}

func newProcess(f InFlight, seen time.Time) process {
	p := process{InFlight: f, keys: slices.Sorted(maps.Keys(f.ByEndpoint)), seen: seen}
	for _, n := range f.ByEndpoint {
		p.listed += n
	}
	return p
}

// tokensAt returns the tokens at an endpoint, which is listed.
func (p *process) tokensAt(key string) int64 {
	if p.TokensByEndpoint != nil || p.listed == 0 {
		return p.TokensByEndpoint[key]
	}
	return p.Tokens * int64(p.ByEndpoint[key]) / int64(p.listed) // below 2^40 · 2^20
}

// refused is an invalid record.
type refused struct {
	lease string
	err   error
}

func newForeign(window time.Duration, boot string) *foreign {
	return &foreign{window: window, boot: boot, replicas: map[string]*replica{}}
}

// saw takes the present Leases. age returns the age of a Lease seen for the first time. saw returns the newly refused
// records.
func (f *foreign) saw(now time.Time, leases []coordinationv1.Lease, age func(*coordinationv1.Lease) time.Duration) []refused {
	for _, r := range f.replicas {
		r.there = false
	}
	var bad []refused
	for i := range leases {
		l := &leases[i]
		r, known := f.replicas[l.Name]
		var old time.Duration
		if !known {
			r = &replica{processes: map[string]process{}}
			f.replicas[l.Name] = r
			old = max(0, age(l))
		}
		if err := r.saw(now, l, old, f.boot); err != nil {
			bad = append(bad, refused{l.Name, err})
		}
	}
	f.sweep(now)
	return bad
}

func (r *replica) saw(now time.Time, l *coordinationv1.Lease, age time.Duration, self string) error {
	id := metav1.ObjectMeta{Name: l.Name, UID: l.UID, ResourceVersion: l.ResourceVersion}
	if r.there = true; r.id.UID != id.UID || r.id.ResourceVersion != id.ResourceVersion {
		r.id, r.changed = id, now.Add(-age)
	}
	text := l.Annotations[Annotation]
	if text == r.text {
		return nil
	}
	r.text, r.draining = text, false
	record, err := decode(text)
	if err != nil {
		return err
	}
	r.draining = record.Draining && record.Boot != self
	if record.Boot != self {
		r.processes[record.Boot] = newProcess(record.InFlight, now.Add(-age))
	}
	for _, e := range record.Earlier {
		if _, known := r.processes[e.Boot]; !known && e.Boot != self {
			r.processes[e.Boot] = newProcess(e.InFlight, now.Add(-age-time.Duration(e.Age)*time.Second))
		}
	}
	for len(r.processes) > maxProcesses {
		newest := r.newestFirst()
		delete(r.processes, newest[len(newest)-1])
	}
	return nil
}

// newestFirst returns the boot IDs of the processes.
func (r *replica) newestFirst() []string {
	return slices.SortedFunc(maps.Keys(r.processes), func(a, b string) int {
		return cmp.Or(r.processes[b].seen.Compare(r.processes[a].seen), strings.Compare(a, b))
	})
}

// sweep forgets the processes that have fallen to 0, the replicas without processes, and if there are too many, those
// whose Leases have been gone longest.
func (f *foreign) sweep(now time.Time) {
	var gone []*replica
	for name, r := range f.replicas {
		for boot, p := range r.processes {
			if f.left(now, p) == 0 {
				delete(r.processes, boot)
			}
		}
		switch {
		case r.there:
		case len(r.processes) == 0:
			delete(f.replicas, name)
		default:
			gone = append(gone, r)
		}
	}
	if over := len(f.replicas) - maxRemembered; over > 0 {
		slices.SortFunc(gone, func(a, b *replica) int {
			return cmp.Or(a.changed.Compare(b.changed), strings.Compare(a.id.Name, b.id.Name))
		})
		for _, r := range gone[:min(over, len(gone))] {
			delete(f.replicas, r.id.Name)
		}
	}
}

// left returns how many of a record's fallSteps parts still count.
func (f *foreign) left(now time.Time, p process) int {
	step := f.window / fallSteps
	if p.Total == 0 && len(p.ByEndpoint) == 0 || step <= 0 {
		return 0
	}
	return int(max(0, fallSteps-max(0, now.Sub(p.seen))/step))
}

// fallen returns the part of n that counts, rounded up.
func fallen[N int | int64](n N, left int) N { return (n*N(left) + fallSteps - 1) / fallSteps }

// stock returns other processes' requests in flight at each of the endpoints. Whatever records claim, the count at an
// endpoint is at most its bound, which falls with the newest record.
func (f *foreign) stock(now time.Time, endpoints []Endpoint) []Held {
	counts, newest := make([]Held, len(endpoints)), make([]int, len(endpoints)) // newest: its left parts
	var position map[string]int
	for _, r := range f.replicas {
		for _, p := range r.processes {
			left := f.left(now, p)
			if left == 0 {
				continue
			}
			if p.ByEndpoint == nil {
				spread(int64(fallen(p.Total, left)), endpoints, func(i int, n int64) {
					counts[i].Requests += int(n)
					newest[i] = max(newest[i], left)
				})
				spread(fallen(p.Tokens, left), endpoints, func(i int, n int64) { counts[i].Tokens += n })
				continue
			}
			if position == nil {
				position = make(map[string]int, len(endpoints))
				for i, e := range endpoints {
					position[e.Key] = i
				}
			}
			// The sum falls evenly, and so does each endpoint's part, within 1.
			before, sum := 0, 0
			for _, key := range p.keys {
				sum += p.ByEndpoint[key]
				if i, ok := position[key]; ok {
					counts[i].Requests += fallen(sum, left) - before
					counts[i].Tokens += fallen(p.tokensAt(key), left)
					newest[i] = max(newest[i], left)
				}
				before = fallen(sum, left)
			}
		}
	}
	for i := range counts {
		counts[i].cut(endpoints[i].Most, newest[i])
	}
	return counts
}

// cut limits the counted requests at an endpoint. Tokens without a request do not count.
func (h *Held) cut(most Held, left int) {
	if most.Requests > 0 {
		h.Requests = min(h.Requests, fallen(most.Requests, left))
	}
	if most.Tokens > 0 {
		h.Tokens = min(h.Tokens, fallen(most.Tokens, left))
	}
	if h.Requests == 0 {
		h.Tokens = 0
	}
}

// spread adds a total to the endpoints in proportion to their bounds. The remainder after rounding down goes to the
// first ones with a bound, one each. Without any bound all endpoints count equally.
func spread(total int64, endpoints []Endpoint, add func(i int, n int64)) {
	if len(endpoints) == 0 || total == 0 {
		return
	}
	bound := func(e Endpoint) uint64 { return uint64(max(0, e.Bound)) }
	var sum uint64
	for _, e := range endpoints {
		sum += bound(e)
	}
	if sum == 0 {
		bound = func(Endpoint) uint64 { return 1 }
		sum = uint64(len(endpoints))
	}
	rest := total
	for i, e := range endpoints {
		hi, lo := bits.Mul64(uint64(total), bound(e))
		part, _ := bits.Div64(hi, lo, sum) // bound <= sum, so the quotient is at most total
		add(i, int64(part))
		rest -= int64(part)
	}
	for i, e := range endpoints {
		if rest == 0 {
			return
		}
		if bound(e) > 0 {
			add(i, 1)
			rest--
		}
	}
}

// next returns the time of the next fall, without new records; zero: never. It is at most one step away.
func (f *foreign) next(now time.Time) time.Time {
	for _, r := range f.replicas {
		for _, p := range r.processes {
			if f.left(now, p) > 0 {
				return now.Add(max(f.window/fallSteps, time.Millisecond))
			}
		}
	}
	return time.Time{}
}

// drains reports whether another, stopping process has written its record within this time, so that it still
// dispatches.
func (f *foreign) drains(now time.Time, within time.Duration) bool {
	for _, r := range f.replicas {
		if r.there && r.draining && now.Sub(r.changed) <= within {
			return true
		}
	}
	return false
}

// earlier returns the requests of earlier processes of a replica that still count, newest first.
func (f *foreign) earlier(now time.Time, lease string) []Earlier {
	r := f.replicas[lease]
	if r == nil {
		return nil
	}
	var list []Earlier
	for _, boot := range r.newestFirst() {
		if p := r.processes[boot]; f.left(now, p) > 0 {
			list = append(list, Earlier{Boot: boot, Age: int(max(0, now.Sub(p.seen)) / time.Second), InFlight: p.InFlight})
		}
	}
	return list
}

// forgotten returns the Leases that have not changed for so long that their replicas must be gone, except the one
// named.
func (f *foreign) forgotten(now time.Time, except string) []metav1.ObjectMeta {
	var gone []metav1.ObjectMeta
	for name, r := range f.replicas {
		if r.there && name != except && now.Sub(r.changed) > forgetAfter+5*f.window {
			gone = append(gone, r.id)
		}
	}
	slices.SortFunc(gone, func(a, b metav1.ObjectMeta) int { return strings.Compare(a.Name, b.Name) })
	return gone
}
