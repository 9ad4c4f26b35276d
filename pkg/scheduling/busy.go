package scheduling

import (
	"math/bits"

	"github.com/weir-epp/weir/pkg/invalid"
)

// BusyRule defines when a request's endpoints are too busy reading prompts. An endpoint is busy while it has more
// prompt tokens to read than PrefillTokens, or than PrefillFraction of its MaxBatchedTokens. The endpoints are too busy
// while WorkerRatio of the ready ones are busy. Without a ready endpoint they are not busy.
type BusyRule struct {
	// PrefillTokens is a number of tokens, 0 to MaxBusyTokens; nil means no limit.
	PrefillTokens *int64
	// PrefillFraction is a part of Endpoint.MaxBatchedTokens, in millionths, 0 to MaxBusyFraction; nil means no limit,
	// as at endpoints with unknown MaxBatchedTokens.
	PrefillFraction *int64
	// WorkerRatio is the part of the ready endpoints that must be busy, in millionths, 1 to Millionths; 0 means all.
	WorkerRatio int64
}

// MaxBusyTokens is the largest BusyRule.PrefillTokens, and MaxBusyFraction the largest PrefillFraction: a thousand.
const (
	MaxBusyTokens   = 1 << 40
	MaxBusyFraction = 1_000 * Millionths
)

// Validate reports every problem at once, as invalid.Problems.
func (r *BusyRule) Validate() error {
	var ps invalid.Problems
	if r.PrefillTokens != nil {
		invalid.Within(&ps, invalid.At("PrefillTokens"), *r.PrefillTokens, 0, MaxBusyTokens)
	}
	if f := r.PrefillFraction; f != nil && (*f < 0 || *f > MaxBusyFraction) {
		ps.Add(invalid.At("PrefillFraction"), float64(*f)/Millionths, "must be from 0 to %d", MaxBusyFraction/Millionths)
	}
	if r.WorkerRatio < 0 || r.WorkerRatio > Millionths {
		ps.Add(invalid.At("WorkerRatio"), float64(r.WorkerRatio)/Millionths, "must be above 0 and at most 1")
	}
	if _, _, given := r.Threshold(); !given && r.WorkerRatio != 0 {
		ps.Add(invalid.At("WorkerRatio"), float64(r.WorkerRatio)/Millionths, "needs %s or %s", invalid.At("PrefillTokens"), invalid.At("PrefillFraction"))
	}
	return ps.Err()
}

// Threshold returns the field with a threshold, and its value; given is false without one, so that no endpoint is ever
// busy.
func (r *BusyRule) Threshold() (field string, value any, given bool) {
	switch {
	case r.PrefillTokens != nil:
		return "PrefillTokens", *r.PrefillTokens, true
	case r.PrefillFraction != nil:
		return "PrefillFraction", float64(*r.PrefillFraction) / Millionths, true
	}
	return "", nil, false
}

// Equal reports whether two rules are the same.
func (r *BusyRule) Equal(o *BusyRule) bool {
	same := func(a, b *int64) bool { return a == b || a != nil && b != nil && *a == *b }
	return same(r.PrefillTokens, o.PrefillTokens) && same(r.PrefillFraction, o.PrefillFraction) && r.ratio() == o.ratio()
}

// ratio returns WorkerRatio with its default.
func (r *BusyRule) ratio() int64 {
	if r.WorkerRatio == 0 {
		return Millionths
	}
	return r.WorkerRatio
}

// busyAt reports whether an endpoint is busy with this number of prompt tokens to read.
func (r *BusyRule) busyAt(prompts, batched int64) bool {
	if r.PrefillTokens != nil && prompts > *r.PrefillTokens {
		return true
	}
	if r.PrefillFraction == nil || batched <= 0 || prompts <= 0 {
		return false
	}
	readHi, readLo := bits.Mul64(uint64(prompts), Millionths)
	mostHi, mostLo := bits.Mul64(uint64(*r.PrefillFraction), uint64(batched))
	return readHi > mostHi || readHi == mostHi && readLo > mostLo
}

// busy reports whether n busy endpoints of all are too many.
func (r *BusyRule) busy(n, all int) bool {
	return all > 0 && int64(n)*Millionths >= r.ratio()*int64(all)
}

// busyness has the busy ready endpoints by one rule.
type busyness struct {
	BusyRule
	at []uint64 // by position
	n  int
}

// SetBusyRules sets the rules of Busy, by number. With any rule, the board counts the tokens of placed prompts with
// ratings.
func (b *Board) SetBusyRules(rules []BusyRule) {
	b.busy = make([]busyness, len(rules))
	for i, r := range rules {
		b.busy[i].BusyRule = r
	}
	b.recountBusy()
}

// recountBusy recomputes the busy endpoints.
func (b *Board) recountBusy() {
	b.turned = b.turned[:0]
	for i := range b.busy {
		x := &b.busy[i]
		x.at, x.n = resized(x.at, wordsFor(len(b.spots))), 0
		clear(x.at)
	}
	for p := range b.spots {
		b.spots[p].turned = false
		b.noteBusy(int32(p))
	}
}

// noteBusy updates whether an endpoint is busy, by each rule.
func (b *Board) noteBusy(p int32) {
	s, changed := &b.spots[p], false
	for i := range b.busy {
		x := &b.busy[i]
		was, is := in(x.at, p), s.ready && x.busyAt(s.prompts, s.batched)
		if was == is {
			continue
		}
		changed = true
		x.at[p/64] ^= 1 << (p % 64)
		if is {
			x.n++
		} else {
			x.n--
		}
	}
	if changed && !s.turned {
		s.turned = true
		b.turned = append(b.turned, b.ring.ids[p])
	}
}

// TakeTurned appends to some the endpoints that have become busy or free, by any rule, since the last call.
func (b *Board) TakeTurned(some []EndpointID) []EndpointID {
	for _, id := range b.turned {
		if p, known := b.ring.position(id); known {
			b.spots[p].turned = false
		}
	}
	some = append(some, b.turned...)
	b.turned = b.turned[:0]
	return some
}

// Busy reports whether the request's ready endpoints are too busy, by rule number. In a small lane it counts one by
// one, otherwise 64 at once.
func (b *Board) Busy(q *Query, rule int) bool {
	b.refresh(q)
	x, n := &b.busy[rule], 0
	switch {
	case q.reach.whole:
		n = x.n
	case q.reach.large():
		for w, ready := range q.reach.words {
			n += bits.OnesCount64(ready & x.at[w])
		}
	default:
		for _, p := range q.reach.ready {
			if in(x.at, p) {
				n++
			}
		}
	}
	return x.busy(n, len(q.reach.ready))
}

// startReading counts the prompt tokens that the endpoint of a reservation reads itself, if the first token will be
// seen or there are rules.
func (b *Board) startReading(q *Query, r *Reservation) {
	known := q.ratings
	if r.In(Prefilling) == NoEndpoint && known != nil && known.Prompt > 0 && (known.Watched || len(b.busy) > 0) {
		r.prompt = int32(known.uncached(known.Cached(r.Endpoint())))
		b.unread += int64(r.prompt)
		b.addPrompt(r.Endpoint(), int64(r.prompt))
	}
}

// PromptRead stops counting the prompt tokens that the endpoint of a reservation reads itself, because the first token
// of the answer has come.
func (b *Board) PromptRead(r *Reservation) {
	if r.Reads() {
		b.unread -= int64(r.prompt)
		b.addPrompt(r.Endpoint(), -int64(r.prompt))
		r.prompt = 0
	}
}

// Prompts returns the counted number of prompt tokens that an endpoint of the pool has to read.
func (b *Board) Prompts(id EndpointID) int64 {
	if p, ok := b.ring.position(id); ok {
		return b.spots[p].prompts
	}
	return 0
}
