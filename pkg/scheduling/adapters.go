package scheduling

import (
	"slices"
	"strings"
)

// AdapterTokens is the cost of loading a LoRA adapter into an engine, in prompt tokens: the engine computes nothing
// else meanwhile. Half as much is added if an idle adapter has to leave, since it may have to be loaded again, and as
// much again if all places are in use, since the request then waits in the engine. Results do not depend much on these
// numbers.
const AdapterTokens = 4000

// unratedPrompt is the assumed length of an unknown prompt, in tokens, where engines are compared by adapters.
const unratedPrompt = 1000

// Limits on the adapters kept for an engine, besides those in flight.
const (
	// fewAdapters is the assumed number of places for adapters in an engine that states none.
	fewAdapters = 8
	// MaxAdapters caps the places, and the adapters of other senders, in an engine's statement.
	MaxAdapters = 256
)

// AdapterState is an engine's own statement about its LoRA adapters. It must not be changed.
type AdapterState struct {
	// Places is the number of adapters that it can run at once; 0: it states none.
	Places int
	// Loaded are the adapters with requests in it, of all senders.
	Loaded []string
}

// adapters are the LoRA adapters that engines are expected to have: those of Weir's own requests there, then the last
// used ones, up to the engine's places, and those of other senders by the engine's statement. Neither its memory nor
// the work for a request grows with the number of existing adapters.
type adapters struct {
	engines map[EndpointID]*loaded
	at      map[string][]EndpointID // the endpoints with each adapter, ascending

	totals AdapterTotals
}

// AdapterTotals count the requests for adapters that were placed.
type AdapterTotals struct {
	// Requests counts all of them, Loads those placed at an engine without the adapter, and Evictions the Loads at an
	// engine with all places taken.
	Requests, Loads, Evictions uint64
}

// loaded are the adapters of one engine.
type loaded struct {
	places int
	list   []resident // the least recently used first
	busy   int        // number of those in use
}

// resident is an adapter at an engine.
type resident struct {
	name     string
	requests int32 // of Weir's own
	others   bool  // the engine states that requests of other senders use it
}

func (r *resident) inUse() bool { return r.requests > 0 || r.others }

func (l *loaded) find(name string) int {
	return slices.IndexFunc(l.list, func(r resident) bool { return r.name == name })
}

// room is the number of adapters that are remembered.
func (l *loaded) room() int {
	if l.places > 0 {
		return l.places
	}
	return fewAdapters
}

// full reports whether another adapter would replace one.
func (l *loaded) full() bool { return l.places > 0 && len(l.list) >= l.places }

// The costs of loading an adapter, in classes: into a free place, in place of an idle one, and where all are in use.
const loadings = 3

// class returns the class of the cost to load an adapter that the engine does not have.
func (l *loaded) class() int {
	switch {
	case l == nil || !l.full():
		return 0
	case l.busy < l.places:
		return 1
	default:
		return 2
	}
}

// loading returns the cost of that class in tokens.
func (l *loaded) loading() int64 { return AdapterTokens + int64(l.class())*AdapterTokens/2 }

// engine returns the adapters of an endpoint's engine, which it adds if it is new.
func (a *adapters) engine(id EndpointID) *loaded {
	l := a.engines[id]
	if l == nil {
		if a.engines == nil {
			a.engines, a.at = map[EndpointID]*loaded{}, map[string][]EndpointID{}
		}
		l = &loaded{}
		a.engines[id] = l
	}
	return l
}

// use counts a request for an adapter at an endpoint.
func (a *adapters) use(name string, id EndpointID) {
	l := a.engine(id)
	a.totals.Requests++
	i := l.find(name)
	if i < 0 {
		a.totals.Loads++
		if l.full() {
			a.totals.Evictions++
		}
		a.enter(l, len(l.list), name, id)
		i = len(l.list) - 1
	} else if last := len(l.list) - 1; i < last {
		r := l.list[i]
		copy(l.list[i:], l.list[i+1:])
		l.list[last], i = r, last
	}
	l.list[i].requests++
	a.trim(l, id)
}

// leave stops counting a request for an adapter at an endpoint. The adapter stays until its place is needed.
func (a *adapters) leave(name string, id EndpointID) {
	l := a.engines[id]
	if l == nil {
		return
	}
	i := l.find(name)
	if i < 0 || l.list[i].requests == 0 {
		return
	}
	if l.list[i].requests--; l.list[i].requests == 0 {
		a.trim(l, id)
	}
}

// enter adds an adapter at a place in an engine's list.
func (a *adapters) enter(l *loaded, i int, name string, id EndpointID) {
	name = strings.Clone(name) // it may be part of a body
	l.list = slices.Insert(l.list, i, resident{name: name})
	on := a.at[name]
	at, _ := slices.BinarySearch(on, id)
	a.at[name] = slices.Insert(on, at, id)
}

// drop removes an adapter from an engine.
func (a *adapters) drop(l *loaded, i int, id EndpointID) {
	name := l.list[i].name
	l.list = slices.Delete(l.list, i, i+1)
	on := a.at[name]
	at, _ := slices.BinarySearch(on, id)
	if on = slices.Delete(on, at, at+1); len(on) == 0 {
		delete(a.at, name)
	} else {
		a.at[name] = on
	}
}

// trim forgets idle adapters beyond the engine's places, the least recently used first.
func (a *adapters) trim(l *loaded, id EndpointID) {
	l.busy = 0
	for i := 0; i < len(l.list); i++ {
		if l.list[i].inUse() {
			l.busy++
		}
	}
	for i := 0; i < len(l.list) && len(l.list) > l.room(); {
		if l.list[i].inUse() {
			i++
		} else {
			a.drop(l, i, id)
		}
	}
}

// state takes an engine's statement. For Weir's own requests the board's counts take precedence. Adapters used only by
// other senders stay while the engine states them, and then until their places are needed.
func (a *adapters) state(id EndpointID, s *AdapterState) {
	if s == nil && a.engines[id] == nil {
		return
	}
	l := a.engine(id)
	for i := range l.list {
		l.list[i].others = false
	}
	if s != nil {
		if s.Places > 0 {
			l.places = min(s.Places, MaxAdapters)
		}
		for _, name := range s.Loaded[:min(len(s.Loaded), MaxAdapters)] {
			i := l.find(name)
			if i < 0 {
				i = 0
				a.enter(l, i, name, id)
			}
			l.list[i].others = l.list[i].requests == 0
		}
	}
	a.trim(l, id)
}

// restart forgets the adapters at an endpoint, except those of requests in flight: its engine is no longer ready, or is
// a new one.
func (a *adapters) restart(id EndpointID, known bool) {
	l := a.engines[id]
	if l == nil {
		return
	}
	for i := len(l.list) - 1; i >= 0; i-- {
		if l.list[i].others = false; l.list[i].requests == 0 {
			a.drop(l, i, id)
		}
	}
	if a.trim(l, id); !known && len(l.list) == 0 {
		delete(a.engines, id)
	}
}

// loading returns the cost in tokens of loading an adapter at an endpoint: 0 if it is there.
func (a *adapters) loading(name string, id EndpointID) int64 {
	if _, has := slices.BinarySearch(a.at[name], id); has {
		return 0
	}
	return a.engines[id].loading()
}
