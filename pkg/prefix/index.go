package prefix

import (
	"cmp"
	"slices"
	"sync"

	"github.com/weir-epp/weir/pkg/scheduling"
)

// Index remembers which endpoint was last given which blocks of prompts. All methods may be called concurrently.
type Index struct {
	mu sync.Mutex // guards all

	config  Config
	nodes   slab
	table   table  // of the nodes, by block and endpoint
	holders counts // how many endpoints have a block
	engines map[scheduling.EndpointID]*engine
	order   []*engine // ascending by ID
	totals  Totals
}

// engine is the index's part of one endpoint.
type engine struct {
	id     scheduling.EndpointID
	name   uint64 // hash of its key, by which replicas rank it alike
	key    string
	tokens int64 // of its KV cache
	shrunk uint8 // how often its limit was halved
	limit  int   // nodes
	fresh  segment
	proven segment
	trust  trust
}

// New returns an empty index.
func New(c Config) *Index {
	return &Index{
		config: c, nodes: newSlab(), table: newTable(), holders: newCounts(), engines: map[scheduling.EndpointID]*engine{},
	}
}

// Endpoint is one endpoint of the pool, for SetEndpoints.
type Endpoint struct {
	ID scheduling.EndpointID
	// Key is its identity. Another key under the same ID is another engine, with an empty cache.
	Key string
	// Tokens is the size of its KV cache in tokens; 0 means that it is not known.
	Tokens int64
	// Ready is false while it may not be picked: it may restart, so nothing is kept of it.
	Ready bool
}

// SetEndpoints changes the pool. It forgets what endpoints had that have left, are not ready, or have another key.
func (x *Index) SetEndpoints(pool []Endpoint) {
	x.mu.Lock()
	defer x.mu.Unlock()
	listed := make(map[scheduling.EndpointID]bool, len(pool))
	for _, p := range pool {
		if !p.Ready {
			continue
		}
		listed[p.ID] = true
		e := x.engines[p.ID]
		if e != nil && e.key != p.Key {
			x.clear(e)
			e = nil
		}
		if e == nil {
			e = &engine{id: p.ID, key: p.Key, name: hashOf(p.Key)}
			x.engines[p.ID] = e
		}
		e.tokens = p.Tokens
	}
	for id, e := range x.engines {
		if !listed[id] {
			x.clear(e)
			delete(x.engines, id)
		}
	}
	x.order = x.order[:0]
	for _, e := range x.engines {
		x.order = append(x.order, e)
	}
	slices.SortFunc(x.order, func(a, b *engine) int { return cmp.Compare(a.id, b.id) })
	x.bound()
}

// bound sets the limit of every endpoint: as many nodes as cover twice its KV cache, less if all together are too many.
func (x *Index) bound() {
	wanted := 0
	for _, e := range x.order {
		e.limit = max(minNodes, int(2*orDefault(e.tokens, DefaultTokens)/tokensPerNode)>>e.shrunk)
		wanted += e.limit
	}
	for _, e := range x.order {
		if wanted > x.config.MaxNodes {
			e.limit = max(1, int(int64(e.limit)*int64(x.config.MaxNodes)/int64(wanted)))
		}
		x.shrink(e)
	}
}

// Clear forgets what an endpoint has: its engine has restarted, or has dropped its cache.
func (x *Index) Clear(id scheduling.EndpointID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if e := x.engines[id]; e != nil {
		x.clear(e)
	}
}

func (x *Index) clear(e *engine) {
	for e.fresh.n > 0 {
		x.drop(&e.fresh, e.fresh.tail)
	}
	for e.proven.n > 0 {
		x.drop(&e.proven, e.proven.tail)
	}
	e.trust = trust{}
}

// insert notes that the endpoint gets the blocks. Those that it had are proven: they have been asked for again.
func (x *Index) insert(e *engine, keys []uint64) {
	keys = keys[:min(len(keys), e.limit)]
	for _, key := range slices.Backward(keys) { // the deepest first, so that a block is never older than those that follow it
		if n := x.find(key, e.id); n != 0 {
			x.nodes.at(n).promote(x, e, n)
			continue
		}
		n := x.nodes.take()
		*x.nodes.at(n) = node{key: key, at: int32(e.id)}
		x.table.add(&x.nodes, n)
		x.holders.add(key)
		e.fresh.push(&x.nodes, n)
	}
	x.shrink(e)
}

// promote moves a node to the front of the proven ones.
func (n *node) promote(x *Index, e *engine, i uint32) {
	if n.proven() {
		e.proven.remove(&x.nodes, i)
	} else {
		e.fresh.remove(&x.nodes, i)
		n.at = ^n.at
	}
	e.proven.push(&x.nodes, i)
}

// shrink brings an endpoint below its limit. Half of that is the most that proven blocks may have, so the rest is always
// there for fresh ones; and no number of these costs a proven one its place.
func (x *Index) shrink(e *engine) {
	for e.proven.n > e.limit/2 {
		i := e.proven.tail
		e.proven.remove(&x.nodes, i)
		x.nodes.at(i).at = int32(e.id)
		e.fresh.push(&x.nodes, i)
	}
	for e.fresh.n+e.proven.n > e.limit {
		x.drop(&e.fresh, e.fresh.tail)
	}
}

// takeBack takes out the blocks that nobody but the caller has asked for, from the deepest on.
func (x *Index) takeBack(e *engine, keys []uint64) {
	for i := min(len(keys), e.limit) - 1; i >= 0; i-- {
		n := x.find(keys[i], e.id)
		if n == 0 {
			continue // the limit has cost it its place
		}
		if x.nodes.at(n).proven() {
			return
		}
		x.drop(&e.fresh, n)
	}
}

// drop removes a node from a segment and from the index.
func (x *Index) drop(from *segment, n uint32) {
	from.remove(&x.nodes, n)
	x.table.remove(&x.nodes, n)
	x.holders.subtract(x.nodes.at(n).key)
	x.nodes.free(n)
}

func (x *Index) find(key uint64, e scheduling.EndpointID) uint32 {
	return x.table.find(&x.nodes, key, e)
}

func orDefault(n, otherwise int64) int64 {
	if n > 0 {
		return n
	}
	return otherwise
}
