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
	members []member // by ID, which is the ring order
	ready   int      // how many of them are

	byAddress map[HostPort]int32
	byHost    map[string][]int32

	// Derived once, so that a request without a subset shares them.
	whole       *reach
	byModel     map[string]*reach
	anyModel    *reach // for a model that no endpoint lists: those that serve any
	listsModels bool
}

// member is an endpoint of a snapshot with its address taken apart.
type member struct {
	Endpoint
	at HostPort
}

// NewSnapshot builds the snapshot of the endpoints, in any order. The version tells snapshots apart for a reader; it
// should increase. Two endpoints with one ID or one address, an ID below 0, and a bound or limit below 0 are broken
// contracts and panic.
func NewSnapshot(version uint64, endpoints []Endpoint) *Snapshot {
	s := &Snapshot{
		version:   version,
		members:   make([]member, 0, len(endpoints)),
		byAddress: make(map[HostPort]int32, len(endpoints)),
		byHost:    make(map[string][]int32, len(endpoints)),
		byModel:   map[string]*reach{},
	}
	for _, e := range endpoints {
		if e.ID < 0 || e.LowerBound < 0 || e.UpperBound < 0 || e.MaxInFlight < 0 {
			panic(fmt.Sprintf("scheduling: endpoint %q has a negative ID, bound or limit", e.Address))
		}
		e.Models, e.Labels = slices.Clone(e.Models), maps.Clone(e.Labels)
		e.LowerBound, e.UpperBound = min(e.LowerBound, maxBound), min(e.UpperBound, maxBound)
		if e.Ready {
			s.ready++
		}
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
		s.byAddress[m.at] = int32(i)
		s.byHost[m.at.Host] = append(s.byHost[m.at.Host], int32(i))
	}
	s.deriveReaches()
	return s
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
	listing := map[string][]int32{} // one pass over all lists: there may be many models at many endpoints
	for i := range s.members {
		for _, model := range s.members[i].Models {
			if on := listing[model]; len(on) == 0 || on[len(on)-1] != int32(i) {
				listing[model] = append(on, int32(i))
			}
		}
	}
	for model, on := range listing {
		positions := append(on, anyModel...)
		slices.Sort(positions)
		r := newReach(s, positions)
		r.lane = modelLane(model)
		s.byModel[model] = r
	}
}

// serving returns those of the positions whose endpoints serve the model.
func (s *Snapshot) serving(positions []int32, model string) []int32 {
	var out []int32
	for _, p := range positions {
		if s.members[p].Serves(model) {
			out = append(out, p)
		}
	}
	return out
}

// Version is what NewSnapshot was given.
func (s *Snapshot) Version() uint64 { return s.version }

// Len is the number of endpoints, ready or not.
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

// ByAddress returns the endpoint at the address, in any form that ParseHostPort reads, with its port.
func (s *Snapshot) ByAddress(address string) (Endpoint, bool) {
	if p, ok := s.byAddress[ParseHostPort(address)]; ok {
		return s.members[p].Endpoint, true
	}
	return Endpoint{}, false
}

// Lists reports whether an endpoint, ready or not, lists the model. One whose list is empty serves any, and lists none.
func (s *Snapshot) Lists(model string) bool { return s.byModel[model] != nil }

// ByHost returns the endpoints at every port of the host, in order of ID.
func (s *Snapshot) ByHost(host string) []Endpoint {
	var out []Endpoint
	for _, p := range s.byHost[ParseHostPort(host).Host] {
		out = append(out, s.members[p].Endpoint)
	}
	return out
}

// Derive returns a snapshot of the same version and endpoints in which change was applied to each, in order of ID.
// The wiring sets bounds and limits so. It must leave ID and Address alone.
func (s *Snapshot) Derive(change func(*Endpoint)) *Snapshot {
	endpoints := make([]Endpoint, len(s.members))
	for i := range s.members {
		endpoints[i] = s.members[i].Endpoint
		change(&endpoints[i])
	}
	return NewSnapshot(s.version, endpoints)
}

func (s *Snapshot) position(id EndpointID) (int32, bool) {
	p, ok := slices.BinarySearchFunc(s.members, id, func(m member, id EndpointID) int { return cmp.Compare(m.ID, id) })
	return int32(p), ok
}
