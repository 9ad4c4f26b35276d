package scheduling

import "math/rand/v2"

// picker chooses from a field and returns a position, or -1. It changes nothing except the random source, which is nil
// unless ties are broken at random. A new one is a file with such a function, and a line in the registry.
type picker struct {
	name string
	pick func(f *field, random *rand.Rand) int32
}

// pickers is the registry, sorted by name.
var pickers = []picker{{PickerMaxScore, maxScore}}

func pickerByName(name string) (picker, bool) {
	for _, p := range pickers {
		if p.name == name {
			return p, true
		}
	}
	return picker{}, false
}

func pickerNames() []string {
	names := make([]string, 0, len(pickers))
	for _, p := range pickers {
		names = append(names, p.name)
	}
	return names
}

// maxScore picks the highest total: among equals the first in the field's order, or a random one. Endpoints for which
// the request adds something are compared with the best of all. Additions are never negative, so if such an endpoint is
// that best itself, it wins with its addition.
func maxScore(f *field, random *rand.Rand) int32 {
	at, top := f.first()
	plain := top // the best total without the request's additions
	best, tied := top, 0
	for _, x := range f.extras {
		p, ok := f.ring.position(x.id)
		if !ok || !f.has(p) {
			continue
		}
		switch total := f.pool.of(int(p)) + x.total; {
		case total > best:
			at, best, tied = p, total, 1
		case total == best:
			if tied++; random == nil && f.before(p, at) {
				at = p
			}
		}
	}
	if random == nil || at < 0 {
		return at
	}
	return f.draw(random, best, best == plain, tied)
}

// before reports whether p comes before q in the field's order.
func (f *field) before(p, q int32) bool {
	if (p >= f.start) != (q >= f.start) {
		return p >= f.start
	}
	return p < q
}

// draw picks one of the endpoints with the best total: all of those with the plain total if that is the best, and the
// given number of those with additions. It uses the random source only if there are two or more.
func (f *field) draw(random *rand.Rand, best Total, plain bool, extras int) int32 {
	others := 0
	if plain {
		others = f.tied(best)
	}
	k := 0
	if others+extras > 1 {
		k = random.IntN(others + extras)
	}
	if k < others {
		return f.nth(best, k)
	}
	k -= others
	for _, x := range f.extras {
		p, ok := f.ring.position(x.id)
		if !ok || !f.has(p) || f.pool.of(int(p))+x.total != best {
			continue
		}
		if k == 0 {
			return p
		}
		k--
	}
	panic("scheduling: fewer equals than were counted")
}
