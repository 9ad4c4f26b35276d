package scheduling

import "strings"

// Needs are a request's demands on an engine besides its model. An endpoint states the ones that its engine cannot meet
// ([Endpoint.Lacks]); one that states nothing is taken to meet all.
//
// The endpoints that meet a request's needs are part of its lane, as those are that serve its model. A need counts only among
// endpoints of the model of which one lacks it, so where no endpoint states anything, lanes are what they were.
type Needs uint8

// The needs.
const (
	NeedImage      Needs = 1 << iota // its prompt has an image
	NeedAudio                        // or sound
	NeedVideo                        // or video
	NeedEmbeddings                   // it asks for embeddings
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

// The tags of constraints that fail, as MindRouter has them.
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

// UnmetError means that endpoints serve the request's model, and none, ready or not, meets its needs.
type UnmetError struct {
	// Needs are the needs that no endpoint meets; if each is met by some endpoint, but all of them by none, all that
	// count.
	Needs Needs
}

// Error implements error.
func (e *UnmetError) Error() string { return "no endpoint meets the needs " + e.Needs.String() }

// Unwrap returns ErrNeedsUnmet.
func (e *UnmetError) Unwrap() error { return ErrNeedsUnmet }

// meeting returns the reach of those members that meet some of the needs that are lacked. It is one for equal sets.
func (r *reach) meeting(needs Needs) *reach {
	if needs != 0 {
		return r.narrowed[needs]
	}
	return r
}

// narrow derives, for each combination of needs that a member lacks, the reach of those that meet it.
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

// meeting returns the positions whose endpoints meet the needs. Prefill engines read whatever a decode engine answers.
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

// needsOf returns the needs of a request that its lane depends on: those that some endpoint with its model lacks.
func (s *Scheduler) needsOf(snap *Snapshot, c *constraint) Needs {
	if c.needs == 0 || snap.lacked == 0 {
		return 0
	}
	return c.needs & s.servingReach(snap, c.model).lacked
}

// unmet returns the error for needs that no endpoint of the base, which has some, meets together.
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
