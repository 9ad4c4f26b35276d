package scheduling

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// Snapshot is the pool at one moment. It is immutable and may be read by any number of goroutines.
type Snapshot struct {
	version uint64
	mark    *mark
	members []member // by ID, which is the ring order
	ready   int      // number of members that are ready and serve requests
	reads   bool     // some members are prefill engines, ready or not
	lacked  Needs    // the needs that some members do not meet

	// These depend on IDs and addresses only, so snapshots that differ in other things share them.
	ring      *ring
	byAddress map[HostPort]int32
	byHost    map[string][]int32

	// Derived once, and shared by all requests without a subset.
	vitals      []vital // by position
	whole       *reach
	byModel     map[string]modelReach // models served by the same endpoints share one reach, and one lane
	anyModel    *reach                // for a model that no endpoint lists: the endpoints that serve any
	listsModels bool

	departed *departed // models listed by earlier snapshots only; nil: none

	// Known from Next; since is nil without it.
	since       *mark        // of the snapshot before
	changed     []EndpointID // that joined, left or changed, ascending
	manyChanged bool         // there are too many to list
	regrouping  *Regrouping  // of the models' lanes; nil if no lane has changed
}

// modelReach is the reach of requests for a model, and the name of their lane.
type modelReach struct {
	*reach
	lane string
}

// member is an endpoint of a snapshot with its parsed address.
type member struct {
	Endpoint
	at HostPort
}

// NewSnapshot returns the snapshot of the endpoints, in any order. The version lets readers tell snapshots apart; it
// should increase. It panics if two endpoints have the same ID or address, or if an ID or limit is negative.
func NewSnapshot(version uint64, endpoints []Endpoint) *Snapshot {
	s := &Snapshot{
		version:   version,
		mark:      new(mark),
		members:   make([]member, 0, len(endpoints)),
		byAddress: make(map[HostPort]int32, len(endpoints)),
		byHost:    make(map[string][]int32, len(endpoints)),
		ring:      &ring{ids: make([]EndpointID, 0, len(endpoints))},
	}
	for _, e := range endpoints {
		e.Models, e.Labels = slices.Clone(e.Models), maps.Clone(e.Labels)
		s.members = append(s.members, member{Endpoint: e, at: ParseHostPort(e.Address)})
	}
	slices.SortFunc(s.members, func(a, b member) int { return cmp.Compare(a.ID, b.ID) })
	for i := range s.members {
		m := &s.members[i]
		if i > 0 && s.members[i-1].ID == m.ID {
			panic(fmt.Sprintf("scheduling: endpoint ID %d of %q is taken", m.ID, m.Address))
		}
		if _, taken := s.byAddress[m.at]; taken {
			panic(fmt.Sprintf("scheduling: endpoint address %q is taken", m.Address))
		}
		s.ring.ids = append(s.ring.ids, m.ID)
		s.byAddress[m.at] = int32(i)
		s.byHost[m.at.Host] = append(s.byHost[m.at.Host], int32(i))
	}
	s.derive()
	return s
}

// derive computes the values derived from the members.
func (s *Snapshot) derive() {
	s.vitals = make([]vital, len(s.members))
	for i := range s.members {
		e := &s.members[i].Endpoint
		if e.ID < 0 || e.MaxInFlight < 0 {
			panic(fmt.Sprintf("scheduling: endpoint %q has a negative ID or limit", e.Address))
		}
		s.vitals[i] = vitalOf(e)
		if s.vitals[i].ready {
			s.ready++
		}
		s.reads = s.reads || e.Work == WorkPrefill
		s.lacked |= e.Lacks & AllNeeds
	}
	s.deriveReaches()
}

func (s *Snapshot) deriveReaches() {
	all := make([]int32, len(s.members))
	var anyModel []int32
	for i := range s.members {
		all[i] = int32(i)
		if len(s.members[i].Models) == 0 {
			anyModel = append(anyModel, int32(i))
		}
	}
	s.whole = newReach(s, all)
	s.anyModel = newReach(s, anyModel)
	s.listsModels = len(anyModel) < len(all)
	listing := map[string][]int32{} // one pass over all lists, since there may be many models at many endpoints
	for i := range s.members {
		for _, model := range s.members[i].Models {
			if on := listing[model]; len(on) == 0 || on[len(on)-1] != int32(i) {
				listing[model] = append(on, int32(i))
			}
		}
	}
	s.byModel = make(map[string]modelReach, len(listing))
	same := map[uint64][]*reach{} // by hash, since a base model has many adapters, all served by the same endpoints
	least := map[*reach]string{}  // the first of the models that share a reach
	for model, on := range listing {
		positions := append(on, anyModel...)
		slices.Sort(positions)
		r := s.oneReach(same, positions)
		if len(r.positions) == 0 {
			continue // prefill engines do not serve requests alone
		}
		s.byModel[model] = modelReach{reach: r}
		if first, known := least[r]; !known || model < first {
			least[r] = model
		}
	}
	lanes := make(map[*reach]string, len(least))
	for r, model := range least {
		lanes[r] = modelLane(model)
	}
	for model, m := range s.byModel {
		m.lane = lanes[m.reach]
		s.byModel[model] = m
	}
	if s.lacked == 0 {
		return
	}
	s.whole.narrow(s)
	s.anyModel.narrow(s)
	for r := range lanes { // each by itself, so in any order
		r.narrow(s)
	}
}

// Lacked returns the needs that some endpoint does not meet.
func (s *Snapshot) Lacked() Needs { return s.lacked }

// laneOf returns the name of the lane of requests for a model without a subset. The snapshot must list models.
func (s *Snapshot) laneOf(model string) string {
	if m, listed := s.byModel[model]; listed {
		return m.lane
	}
	return unlistedLane
}

// oneReach returns the reach of the positions, shared by equal positions.
func (s *Snapshot) oneReach(same map[uint64][]*reach, positions []int32) *reach {
	hash := uint64(len(positions))
	for _, p := range positions {
		hash = (hash ^ uint64(p)) * 0x100000001b3 // FNV-1a's prime
	}
	for _, r := range same[hash] {
		if slices.Equal(r.all, positions) {
			return r
		}
	}
	r := newReach(s, positions)
	same[hash] = append(same[hash], r)
	return r
}

// serving returns the positions of endpoints that serve the model.
func (s *Snapshot) serving(positions []int32, model string) []int32 {
	var out []int32
	for _, p := range positions {
		if s.members[p].Serves(model) {
			out = append(out, p)
		}
	}
	return out
}

// Version returns the version passed to NewSnapshot.
func (s *Snapshot) Version() uint64 { return s.version }

// Len returns the number of endpoints, ready or not.
func (s *Snapshot) Len() int { return len(s.members) }

// At returns the i-th endpoint in order of ID. Its Models and Labels must not be changed.
func (s *Snapshot) At(i int) Endpoint { return s.members[i].Endpoint }

// ByID returns the endpoint with the ID.
func (s *Snapshot) ByID(id EndpointID) (Endpoint, bool) {
	if p, ok := s.position(id); ok {
		return s.members[p].Endpoint, true
	}
	return Endpoint{}, false
}

// ByAddress returns the endpoint at the address, in any form that ParseHostPort accepts, with its port.
func (s *Snapshot) ByAddress(address string) (Endpoint, bool) {
	if p, ok := s.byAddress[ParseHostPort(address)]; ok {
		return s.members[p].Endpoint, true
	}
	return Endpoint{}, false
}

// Lists reports whether an endpoint, ready or not, lists the model. An endpoint with an empty list serves any model,
// but lists none.
func (s *Snapshot) Lists(model string) bool {
	_, listed := s.byModel[model]
	return listed
}

func (s *Snapshot) position(id EndpointID) (int32, bool) { return s.ring.position(id) }
