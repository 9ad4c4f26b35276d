package dispatch

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/weir-epp/weir/pkg/fairqueue"
)

// digest identifies a state: among a billion states, two share a digest with a probability of 10^-20.
type digest [16]byte

// digests is a set of states.
type digests struct {
	shards [64]struct {
		sync.Mutex
		known map[digest]struct{}
	}
}

// add adds d, and reports whether it was not known.
func (s *digests) add(d digest) (is bool) {
	shard := &s.shards[d[0]%64]
	shard.Lock()
	defer shard.Unlock()
	if shard.known == nil {
		shard.known = map[digest]struct{}{}
	}
	n := len(shard.known)
	shard.known[d] = struct{}{}
	return len(shard.known) > n
}

func (s *digests) has(d digest) bool {
	shard := &s.shards[d[0]%64]
	shard.Lock()
	defer shard.Unlock()
	_, known := shard.known[d]
	return known
}

func (s *digests) len() (n int) {
	for i := range s.shards {
		n += len(s.shards[i].known)
	}
	return n
}

// state returns the digest of all that decides the future. It omits ended requests, treats requests of a kind as equal,
// and includes times and sequences only as far as they are compared. Worlds with the same state are explored once.
func (w *world) state() digest {
	b := append(w.bytes[:0], byte(w.level), one(w.reloaded), byte(w.scene.requests-len(w.subjects)), byte(w.fleet.foreign[0]), byte(w.fleet.foreign[1]))
	returning, others, victims, charged := w.returning[:0], w.others[:0], w.newest[:0], w.charged[:0]
	for _, s := range w.subjects {
		if s.waits() && s.kind.lane.cached() != NoEndpoint { // ordered by arrival
			b = append(append(b, s.kind.lane...), s.kind.flow...)
		}
		l := s.w.Granted()
		switch {
		case w.scene.usage != nil:
			if l.held.Held() {
				charged = append(charged, s)
			}
		case s.w.stage == StageGranted:
			returning = append(returning, &s.w.queued)
			b = append(b, byte(l.Endpoint()), one(l.held.Promoted()), one(l.counted), one(l.preemptible), one(l.Reads()))
		case !l.held.Held():
			continue
		case l.victimIndex == 0:
			others = append(others, w.describe(s))
		}
		if l.victimIndex > 0 {
			victims = append(victims, s)
		}
	}
	// Their order assigns the charges to requests. A request that has not waited has no charge, and its arrival does
	// not count.
	slices.SortStableFunc(charged, func(a, b *subject) int {
		switch first, second := a.w.WasQueued(), b.w.WasQueued(); {
		case first && second:
			return 0
		case first || second:
			return int(one(first)) - int(one(second))
		}
		return cmp.Compare(w.describe(a), w.describe(b))
	})
	for _, s := range charged {
		returning = append(returning, &s.w.queued)
		b = append(b, one(s.w.preemptible))
		b = binary.BigEndian.AppendUint64(b, w.describe(s))
	}
	slices.SortFunc(victims, func(a, b *subject) int { return int(a.w.victimAge) - int(b.w.victimAge) })
	b = append(b, '|')
	for _, s := range victims {
		b = binary.BigEndian.AppendUint64(b, w.describe(s))
	}
	slices.Sort(others)
	b = append(b, '|')
	for _, o := range others {
		b = binary.BigEndian.AppendUint64(b, o)
	}
	for _, lane := range slices.Sorted(maps.Keys(w.lanes.notes)) {
		n := w.lanes.notes[lane]
		b = append(append(b, '|', byte(len(lane))), lane...)
		for _, tiers := range []fairqueue.TierSet{n.noVictim, n.overBound, n.vain, n.vainBeside, n.searching} {
			b = binary.BigEndian.AppendUint64(b, uint64(tiers))
		}
		b = append(b, one(n.closed))
		for _, tier := range slices.Sorted(maps.Keys(n.swaps)) {
			c := n.swaps[tier]
			b = appendKeys(append(b, byte(tier), one(n.roomier.Has(tier))), c.list[:c.untried])
			b = appendKeys(b, c.list[c.untried:])
		}
	}
	if w.capped {
		for _, t := range w.flows.inOrder() {
			if len(t.roused) > 0 {
				b = fmt.Append(b, t.key, slices.Sorted(slices.Values(t.roused)))
			}
		}
		for _, tenants := range w.swaps {
			b = appendKeys(b, tenants)
		}
		for _, e := range slices.Sorted(maps.Keys(w.awaitsTokens)) {
			await := slices.DeleteFunc(slices.Clone(w.awaitsTokens[e].list), func(t *tenant) bool { return t.waiting == 0 })
			b = appendKeys(append(b, byte(e)), await)
		}
	}
	b = w.appendRoles(w.appendQuotas(w.appendPrompts(w.appendEngines(b))))
	if w.config.ReleaseSpacing > 0 {
		b = append(b, one(w.spaced))
		b = binary.BigEndian.AppendUint64(b, uint64(max(0, w.released.Add(w.config.ReleaseSpacing).Sub(w.clock))))
	}
	b = w.queue.AppendState(b, w.clock, 100*tick, returning...)
	w.bytes, w.returning, w.others, w.newest, w.charged = b, returning, others, victims, charged
	sum := sha256.Sum256(b)
	return digest(sum[:16])
}

// appendKeys appends the keys of tenants in alphabetical order.
func appendKeys(b []byte, tenants []*tenant) []byte {
	keys := make([]string, len(tenants))
	for i, t := range tenants {
		keys[i] = t.key
	}
	slices.Sort(keys)
	return fmt.Append(b, keys)
}

// scratch is memory reused by state.
type scratch struct {
	bytes     []byte
	returning []*fairqueue.Request
	others    []uint64
	newest    []*subject
	charged   []*subject
}

func one(is bool) byte {
	if is {
		return 1
	}
	return 0
}

// describe returns the properties that distinguish one lease from another.
func (w *world) describe(s *subject) uint64 {
	l := s.w.Granted()
	d := uint64(one(l.Reads()))<<16 | uint64(s.w.stage)<<8 | uint64(l.Endpoint())
	if s.w.stage == StageGranted { // the queue has the rest
		return d<<32 | uint64(s.kind.tier)
	}
	d = d<<32 | uint64(l.held.Tier())<<24 | uint64(s.kind.flow[0])<<16
	if class := s.kind.class(); class != "" {
		d |= uint64(class[0]) << 8
	}
	if user := s.kind.user(); user != "" {
		d |= uint64(user[0]) << 48
	}
	return d | uint64(l.held.Tokens())<<2 | uint64(one(l.held.Promoted()))<<1 | uint64(one(l.counted))
}
