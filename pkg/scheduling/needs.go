package scheduling

import "strings"

// Needs are a request's needs besides its model. An endpoint states the needs that its engine cannot meet
// ([Endpoint.Lacks]); without a statement it is assumed to meet all.
//
// Like its model, a request's needs determine its lane. A need counts only if some endpoint of the model lacks it, so
// without statements needs do not change lanes.
type Needs uint8

// The needs.
const (
	NeedImage      Needs = 1 << iota // its prompt has an image
	NeedAudio                        // or sound
	NeedVideo                        // or video
	NeedEmbeddings                   // it requests embeddings
	NeedStructured                   // its answer has a given form: a schema, a grammar, or calls of tools
	endOfNeeds
)

// AllNeeds has every need.
const AllNeeds = endOfNeeds - 1

// needNames are the names of the needs, in the order of their bits: those of an endpoint's capabilities.
var needNames = [...]string{"image", "audio", "video", "embeddings", "structured_output"}

// NeedNames returns the names of all needs.
func NeedNames() []string { return append([]string(nil), needNames[:]...) }

// NeedOf returns the need of a name.
func NeedOf(name string) (need Needs, known bool) {
	for i, n := range needNames {
		if n == name {
			return 1 << i, true
		}
	}
	return 0, false
}

// Names returns the names of the needs, in the order of their bits.
func (n Needs) Names() (names []string) {
	for i, name := range needNames {
		if n>>i&1 != 0 {
			names = append(names, name)
		}
	}
	return names
}

// String returns the names, separated by commas.
func (n Needs) String() string { return strings.Join(n.Names(), ",") }

// MindRouter's tags of failed constraints.
const (
	TagModel      = "model_not_available"
	TagModality   = "modality_not_supported"
	TagStructured = "structured_output_not_supported"
	TagCapacity   = "no_capacity"
	TagMemory     = "memory_insufficient"
)

// Tag returns the tag of needs that are not met; "" if there are none. A modality goes first.
func (n Needs) Tag() string {
	switch {
	case n&^NeedStructured != 0:
		return TagModality
	case n != 0:
		return TagStructured
	}
	return ""
}

// UnmetError means that endpoints serve the request's model, but none, ready or not, meets its needs.
type UnmetError struct {
	// Needs are the needs that no endpoint meets. If each need is met by some endpoint, but no endpoint meets all, they
	// are all needs that count.
	Needs Needs
}

// Error implements error.
func (e *UnmetError) Error() string { return "no endpoint meets the needs " + e.Needs.String() }

// Unwrap returns ErrNeedsUnmet.
func (e *UnmetError) Unwrap() error { return ErrNeedsUnmet }

// meeting returns the reach of the members that meet the given lacked needs. Equal sets share one reach.
func (r *reach) meeting(needs Needs) *reach {
	if needs != 0 {
		return r.narrowed[needs]
	}
	return r
}

// narrow derives, for each combination of lacked needs, the reach of the members that meet it.
func (r *reach) narrow(s *Snapshot) {
	r.lacked = 0
	for _, p := range r.all {
		if m := &s.members[p]; m.Work.Serves() {
			r.lacked |= m.Lacks & AllNeeds
		}
	}
	if r.lacked == 0 {
		return
	}
	same := map[uint64][]*reach{}
	r.narrowed = make([]*reach, r.lacked+1)
	for needs := Needs(1); needs <= r.lacked; needs++ {
		if needs&^r.lacked == 0 {
			r.narrowed[needs] = s.oneReach(same, s.meeting(r.all, needs))
		}
	}
}

// meeting returns the positions of endpoints that meet the needs. Prefill engines read prompts for any answer of a
// decode engine.
func (s *Snapshot) meeting(positions []int32, needs Needs) (some []int32) {
	for _, p := range positions {
		if m := &s.members[p]; m.Lacks&needs == 0 || !m.Work.Serves() {
			some = append(some, p)
		}
	}
	return some
}

// needsLane begins the part of a lane's name that tells its needs. No other part begins so, since names are quoted.
const needsLane = "needs="

// needsOf returns the needs of a request that determine its lane: those that some endpoint with its model lacks.
func (s *Scheduler) needsOf(snap *Snapshot, c *constraint) Needs {
	if c.needs == 0 || snap.lacked == 0 {
		return 0
	}
	return c.needs & s.servingReach(snap, c.model).lacked
}

// unmet returns the error for needs that no endpoint of the non-empty base meets together.
func (s *Scheduler) unmet(snap *Snapshot, base *reach, needs Needs) error {
	all := Needs(0)
	none := AllNeeds
	for _, p := range base.positions {
		lacks := snap.members[p].Lacks & needs
		all |= lacks
		none &= lacks
	}
	if none != 0 {
		return &UnmetError{none}
	}
	return &UnmetError{all}
}
