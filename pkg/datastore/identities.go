package datastore

import (
	"math"
	"slices"
	"time"

	"github.com/weir-epp/weir/pkg/scheduling"
)

// forgetTime is the time after a publication until departed endpoints with requests in flight are checked again.
const forgetTime = 10 * time.Second

// askAtOnce is the largest number of endpoints in a call of Config.InUse, which holds the controller's lock.
const askAtOnce = 64

// maxEndpointID is the largest ID; a scheduling.Reservation holds ID + 1.
const maxEndpointID = math.MaxInt32 - 1

// identities has the endpoints of the pool, and departed ones not yet forgotten, by key. IDs ascend, so a free ID is
// reused only after all others: an old reference to a forgotten endpoint's ID cannot mean a new endpoint.
type identities struct {
	byKey map[string]*identity
	used  map[scheduling.EndpointID]string // the keys
	next  scheduling.EndpointID
	lists uint64 // number of calls of list
	here  int    // number of endpoints in the current list
}

type identity struct {
	id     scheduling.EndpointID
	listed uint64 // the last list with it
}

func newIdentities() identities {
	return identities{byKey: map[string]*identity{}, used: map[scheduling.EndpointID]string{}}
}

// list begins a new list of the pool; a call of of for each of its endpoints follows.
func (s *identities) list() {
	s.lists++
	s.here = 0
}

// of returns the ID for a key, and reports whether the key is in the current list already.
func (s *identities) of(key string) (id scheduling.EndpointID, twice bool) {
	known := s.byKey[key]
	if known == nil {
		known = &identity{id: s.free()}
		s.byKey[key], s.used[known.id] = known, key
	}
	if known.listed == s.lists {
		return known.id, true
	}
	known.listed = s.lists
	s.here++
	return known.id, false
}

// free returns the next ID that no endpoint has.
func (s *identities) free() scheduling.EndpointID {
	for {
		id := s.next
		if s.next++; s.next > maxEndpointID {
			s.next = 0
		}
		if _, taken := s.used[id]; !taken {
			return id
		}
	}
}

// departed returns the number of known endpoints that are not in the current list.
func (s *identities) departed() int { return len(s.byKey) - s.here }

// forget forgets the endpoints outside the current list and the snapshot, unless inUse names them.
func (s *identities) forget(published *scheduling.Snapshot, inUse func([]scheduling.EndpointID) []scheduling.EndpointID) {
	if s.departed() == 0 {
		return
	}
	var gone []scheduling.EndpointID
	for _, known := range s.byKey {
		if known.listed == s.lists {
			continue
		}
		if _, still := published.ByID(known.id); !still {
			gone = append(gone, known.id)
		}
	}
	for some := range slices.Chunk(gone, askAtOnce) {
		var stay []scheduling.EndpointID
		if inUse != nil {
			stay = inUse(some)
		}
		for _, id := range some {
			if !slices.Contains(stay, id) {
				delete(s.byKey, s.used[id])
				delete(s.used, id)
			}
		}
	}
}
