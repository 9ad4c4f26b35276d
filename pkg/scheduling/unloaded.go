package scheduling

import (
	"math/rand/v2"
	"slices"
)

// MaxUnloaded is the most models counted in an engine's statement.
const MaxUnloaded = 256

// Unloaded are the models that an engine lists but states as not loaded, ascending. It must not be changed. All other
// models are assumed to be loaded.
type Unloaded struct{ Models []string }

// unloaded are the endpoints without a model loaded, by model.
type unloaded map[string]*EndpointSet

// state replaces an endpoint's statement. Either may be nil.
func (u *unloaded) state(id EndpointID, before, now *Unloaded) {
	for _, model := range before.models() {
		set := (*u)[model]
		if set.Remove(id); set.Len() == 0 {
			delete(*u, model)
		}
	}
	for _, model := range now.models() {
		if *u == nil {
			*u = unloaded{}
		}
		set := (*u)[model]
		if set == nil {
			set = &EndpointSet{}
			(*u)[model] = set
		}
		set.Add(id)
	}
}

func (s *Unloaded) models() []string {
	if s == nil {
		return nil
	}
	return s.Models[:min(len(s.Models), MaxUnloaded)]
}

// UnloadedBy returns the statement of the engine of an endpoint of the pool; nil: none.
func (b *Board) UnloadedBy(id EndpointID) *Unloaded {
	if p, ok := b.ring.position(id); ok {
		return b.spots[p].signals.Unloaded
	}
	return nil
}

// loadedAt reports whether the request's model is assumed to be loaded at a position.
func (f *field) loadedAt(p int32) bool {
	if f.adapter != "" {
		_, has := slices.BinarySearch(f.holders, f.ring.ids[p])
		return has
	}
	return !in(f.unloaded, p)
}

// bestPointed picks the endpoint with the highest total, with the bonus where the request's model is loaded: it
// compares the best of all without the bonus with the best of those with the model loaded. Endpoints with room come
// before full ones.
func (f *field) bestPointed(bonus Standing, random *rand.Rand) int32 {
	at, top := f.first()
	switch {
	case at < 0:
		return at
	case f.unloaded == nil && f.adapter == "":
		if random == nil {
			return at
		}
		return f.draw(random, top)
	case random != nil:
		return f.drawPointed(bonus, random)
	case f.loadedAt(at):
		return at
	}
	loaded, most := f.bestOfLoaded()
	if most += bonus; loaded >= 0 && (most > top || most == top && f.before(loaded, at)) {
		return loaded
	}
	return at
}

// bestOfLoaded returns the first endpoint with the best total among those with the request's model loaded; -1 if there
// is none.
func (f *field) bestOfLoaded() (at int32, top Standing) {
	if f.adapter == "" {
		g := *f
		g.whole, g.lane, g.without = false, nil, f.unloaded
		if f.without != nil {
			f.merged = resized(f.merged, len(f.without))
			for w := range f.merged {
				f.merged[w] = f.without[w] | f.unloaded[w]
			}
			g.without = f.merged
		}
		return g.look()
	}
	at = -1
	for _, id := range f.holders {
		p, ok := f.ring.position(id)
		if !ok || !f.has(p) {
			continue
		}
		if total := f.pool.of(int(p)); at < 0 || total > top || total == top && f.before(p, at) {
			at, top = p, total
		}
	}
	return at, top
}

// drawPointed picks one of the endpoints with the highest total. It visits all of them.
func (f *field) drawPointed(bonus Standing, random *rand.Rand) int32 {
	at, top, tied := int32(-1), out, 0
	f.each(func(p int32, total Standing) bool {
		if f.loadedAt(p) {
			total += bonus
		}
		switch {
		case at < 0 || total > top:
			at, top, tied = p, total, 1
		case total == top:
			if tied++; random.IntN(tied) == 0 {
				at = p
			}
		}
		return true
	})
	return at
}
