package prefix

import (
	"cmp"
	"hash/fnv"
	"slices"
	"sync"

	"github.com/weir-epp/weir/internal/splitmix"
	"github.com/weir-epp/weir/pkg/body"
	"github.com/weir-epp/weir/pkg/scheduling"
)

// Prefix is a prompt in the index's form.
type Prefix = body.Blocks

// Index remembers the blocks of prompts that each endpoint was given last. All methods may be called concurrently.
type Index struct {
	changing sync.Mutex // held while endpoints are changed, before mu

	mu      sync.Mutex // guards all else
	config  Config
	nodes   slab
	table   table  // of the nodes, by block and endpoint
	holders counts // the number of endpoints with each block
	engines map[scheduling.EndpointID]*engine
	order   []*engine // ascending by ID
	totals  Totals

	probes []probe // memory of holding
	found  []scheduling.EndpointID
}

// engine is the index's part of one endpoint.
type engine struct {
	id     scheduling.EndpointID
	name   uint64 // hash of its key, for a ranking equal in all replicas
	key    string
	leaves bool  // no more blocks are added
	tokens int64 // of its KV cache; 0: unknown
	sized  int64 // the same by its KV events, which takes precedence; 0: unknown
	// Its engine's counters in the last report.
	produced, preemptions int64

	shrunk uint8  // how often its limit was halved
	limit  int    // nodes
	got    uint64 // nodes added so far
	all    share
	owned  [owners]share // the blocks that only one flow has asked for
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
	// Tokens is the size of its KV cache in tokens; 0 means unknown, or as reported by its engine.
	Tokens int64
	// Ready is false while it must not be picked. It may restart then, so its blocks are dropped.
	Ready bool
}

// SetEndpoints changes the pool. It forgets the blocks of endpoints that have left, are not ready, or have another key.
func (x *Index) SetEndpoints(pool []Endpoint) {
	x.changing.Lock()
	defer x.changing.Unlock()
	for _, e := range x.leaving(pool) {
		x.forget(e)
		x.locked(func() { delete(x.engines, e.id) })
	}
	x.locked(func() {
		for _, p := range pool {
			if !p.Ready {
				continue
			}
			e := x.engines[p.ID]
			if e == nil {
				e = &engine{id: p.ID, key: p.Key, name: hashOf(p.Key)}
				x.engines[p.ID] = e
			}
			if p.Tokens > 0 {
				e.tokens = p.Tokens
			}
		}
		x.order = x.order[:0]
		for _, e := range x.engines {
			x.order = append(x.order, e)
		}
		slices.SortFunc(x.order, func(a, b *engine) int { return cmp.Compare(a.id, b.id) })
	})
	x.bound()
}

// leaving returns the engines that are not in a pool.
func (x *Index) leaving(pool []Endpoint) (gone []*engine) {
	keys := make(map[scheduling.EndpointID]string, len(pool))
	for _, p := range pool {
		if p.Ready {
			keys[p.ID] = p.Key
		}
	}
	x.locked(func() {
		for id, e := range x.engines {
			if key, listed := keys[id]; !listed || key != e.key {
				e.leaves = true
				gone = append(gone, e)
			}
		}
	})
	return gone
}

// SetSignals takes the signals of an endpoint's engine. An engine whose counters fall has restarted with an empty
// cache. A cache that differs by more than an eighth gets another limit.
func (x *Index) SetSignals(id scheduling.EndpointID, s scheduling.Signals) {
	x.changing.Lock()
	defer x.changing.Unlock()
	var restarted *engine
	resized := false
	x.locked(func() {
		e := x.engines[id]
		if e == nil || !s.Known {
			return
		}
		if s.Produced < e.produced || s.Preemptions < e.preemptions {
			restarted = e
		}
		e.produced, e.preemptions = s.Produced, s.Preemptions
		before := orDefault(e.tokens, DefaultTokens)
		if resized = s.CacheTokens > 0 && 8*abs(min(s.CacheTokens, maxTokens)-before) > before; resized {
			e.tokens = min(s.CacheTokens, maxTokens)
		}
	})
	if restarted != nil {
		x.forget(restarted)
	}
	if resized {
		x.bound()
	}
}

// Resize sets the size of an endpoint's KV cache in tokens, by the blocks that it has stored and removed. It takes
// precedence over the size stated by its engine or its source.
func (x *Index) Resize(id scheduling.EndpointID, tokens int64) {
	x.changing.Lock()
	defer x.changing.Unlock()
	resized := false
	x.locked(func() {
		if e := x.engines[id]; e != nil && e.sized != tokens {
			e.sized, resized = tokens, true
		}
	})
	if resized {
		x.bound()
	}
}

// bound sets the limit of every endpoint: nodes for twice its KV cache, or fewer if all together are too many. The
// caller holds changing.
func (x *Index) bound() {
	var all []*engine
	x.locked(func() {
		wanted := 0
		for _, e := range x.order {
			tokens := min(orDefault(e.sized, orDefault(e.tokens, DefaultTokens)), maxTokens)
			e.limit = max(minNodes, int(2*tokens/tokensPerNode)>>e.shrunk)
			wanted += e.limit
		}
		for _, e := range x.order {
			if wanted > x.config.MaxNodes {
				e.limit = max(1, int(int64(e.limit)*int64(x.config.MaxNodes)/int64(wanted)))
			}
		}
		all = slices.Clone(x.order)
	})
	for _, e := range all {
		for done := false; !done; {
			x.locked(func() { done = x.shrink(e, piece) })
		}
	}
}

// piece is the number of nodes dropped while holding the lock, about a tenth of a millisecond.
const piece = 1000

// locked calls f while it holds the lock.
func (x *Index) locked(f func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	f()
}

// Clear forgets an endpoint's blocks: its engine has dropped its cache.
func (x *Index) Clear(id scheduling.EndpointID) {
	x.changing.Lock()
	defer x.changing.Unlock()
	var e *engine
	x.locked(func() { e = x.engines[id] })
	if e != nil {
		x.forget(e)
	}
}

// forget drops an endpoint's nodes, in pieces. Blocks added meanwhile may stay. The caller holds changing.
func (x *Index) forget(e *engine) {
	left := 0
	x.locked(func() { left, e.trust = e.all.size(), trust{} })
	for left > 0 {
		x.locked(func() {
			left = min(left, e.all.size())
			for range min(left, piece) {
				x.drop(e, e.all.oldest())
			}
			left -= min(left, piece)
		})
	}
}

// insert notes that the endpoint gets a prompt. Its earlier blocks become proven: they have been asked for again.
func (x *Index) insert(e *engine, p *Prefix) {
	keys := p.Keys[:min(len(p.Keys), e.limit)]
	owner, now := ownerOf(p.Flow), e.now()
	for i, key := range slices.Backward(keys) { // the deepest first, so that a block is never older than its successors
		if at := x.find(key, e.id); at != 0 {
			n := x.nodes.at(at)
			x.pull(e, at)
			n.key |= provenMark | againMark
			if n.owner() != owner {
				n.touched(0, now)
			} else {
				n.touched(owner, now)
			}
			x.push(e, at)
			continue
		}
		at := x.nodes.take()
		n := x.nodes.at(at)
		*n = node{key: key &^ marks, at: e.id}
		n.touched(owner, now)
		if i == len(keys)-1 {
			n.key |= lastMark
		}
		x.table.add(&x.nodes, at)
		x.holders.add(key)
		x.push(e, at)
		e.got++
	}
	x.shrink(e, len(keys))
}

// takeBack removes the blocks that only the caller has asked for, from the deepest on. It does nothing if the deepest
// is no longer the last of a prompt, because other blocks may follow it.
func (x *Index) takeBack(e *engine, keys []uint64) {
	keys = keys[:min(len(keys), e.limit)]
	for i, key := range slices.Backward(keys) {
		at := x.find(key, e.id)
		if at == 0 || x.nodes.at(at).has(againMark) || i == len(keys)-1 && !x.nodes.at(at).has(lastMark) {
			return
		}
		x.drop(e, at)
	}
}

// drop removes a node from the index.
func (x *Index) drop(e *engine, at uint32) {
	x.pull(e, at)
	x.table.remove(&x.nodes, at)
	x.holders.subtract(x.nodes.at(at).key)
	x.nodes.free(at)
}

func (x *Index) find(key uint64, e scheduling.EndpointID) uint32 {
	return x.table.find(&x.nodes, key, e)
}

// hashOf hashes a name, with the same result in every process.
func hashOf(name string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name)) // never fails
	return splitmix.Mix(h.Sum64())
}

func orDefault(n, otherwise int64) int64 {
	if n > 0 {
		return n
	}
	return otherwise
}

func abs(n int64) int64 { return max(n, -n) }
