package scheduling

import "slices"

// mostChanges is the largest number of changed endpoints listed one by one; beyond it all count as changed.
const mostChanges = 64

// mark identifies a snapshot without keeping it in memory.
type mark struct{ _ byte }

// Next returns NewSnapshot(version, endpoints), with the differences from s, so that a board need not visit every
// endpoint, and with the models listed before (HasListed).
func (s *Snapshot) Next(version uint64, endpoints []Endpoint) *Snapshot {
	next := NewSnapshot(version, endpoints)
	if slices.Equal(next.ring.ids, s.ring.ids) {
		next.ring = s.ring
	}
	next.changed, next.manyChanged = changes(s, next)
	next.regrouping = regroupingOf(s, next)
	next.since = s.mark
	next.departed = next.departedSince(s)
	return next
}

// changesSince returns the endpoints that joined, left or changed since another snapshot, ascending; many means that they
// are too many to list.
func (s *Snapshot) changesSince(before *Snapshot) (changed []EndpointID, many bool) {
	if s.since == before.mark {
		return s.changed, s.manyChanged
	}
	return changes(before, s)
}

func changes(before, after *Snapshot) (changed []EndpointID, many bool) {
	old, now := before.members, after.members
	for len(old) > 0 || len(now) > 0 {
		var id EndpointID
		switch {
		case len(now) == 0 || len(old) > 0 && old[0].ID < now[0].ID:
			id, old = old[0].ID, old[1:]
		case len(old) == 0 || now[0].ID < old[0].ID:
			id, now = now[0].ID, now[1:]
		default:
			same := placesLike(&old[0].Endpoint, &now[0].Endpoint)
			id, old, now = now[0].ID, old[1:], now[1:]
			if same {
				continue
			}
		}
		if len(changed) == mostChanges {
			return nil, true
		}
		changed = append(changed, id)
	}
	return changed, false
}

// placesLike reports whether two values of an endpoint are equal in all fields that affect placements.
func placesLike(e, o *Endpoint) bool {
	return vitalOf(e) == vitalOf(o) && e.Address == o.Address && slices.Equal(e.Models, o.Models)
}

// TakeChanges appends to some the endpoints that have changed since the last call: they joined or left the pool, or
// changed in a field that affects placements. all means that there are too many to list, or that the scheduler has
// changed.
func (b *Board) TakeChanges(some []EndpointID) (changed []EndpointID, all bool) {
	some, all = append(some, b.untaken...), b.allChanged
	b.untaken, b.allChanged = b.untaken[:0], false
	return some, all
}

// noteChanges adds endpoints to the result of the next TakeChanges.
func (b *Board) noteChanges(changed []EndpointID, all bool) {
	if all || b.allChanged || len(b.untaken)+len(changed) > mostChanges {
		b.untaken, b.allChanged = b.untaken[:0], true
		return
	}
	b.untaken = append(b.untaken, changed...)
}
