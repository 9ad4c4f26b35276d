package prefix

// list is a list of nodes, by when they were last asked for.
type list struct {
	head, tail uint32 // the newest and the oldest
	n          int32
}

// push makes a node the newest. by selects the list's links in the node.
func (l *list) push(s *slab, n uint32, by int) {
	s.at(n).links[by] = links{older: l.head}
	if l.head != 0 {
		s.at(l.head).links[by].newer = n
	} else {
		l.tail = n
	}
	l.head = n
	l.n++
}

func (l *list) remove(s *slab, n uint32, by int) {
	x := s.at(n).links[by]
	if x.newer != 0 {
		s.at(x.newer).links[by].older = x.older
	} else {
		l.head = x.older
	}
	if x.older != 0 {
		s.at(x.older).links[by].newer = x.newer
	} else {
		l.tail = x.newer
	}
	l.n--
}

// share is the nodes of an endpoint, or of one owner at an endpoint. In either list no block is older than its
// successor in a prompt, and no fresh block has a proven successor.
type share struct{ fresh, proven list }

func (h *share) size() int { return int(h.fresh.n + h.proven.n) }

// of returns the list for a node.
func (h *share) of(n *node) *list {
	if n.has(provenMark) {
		return &h.proven
	}
	return &h.fresh
}

// oldest returns the oldest fresh node or, without one, the oldest proven one; 0: none.
func (h *share) oldest() uint32 {
	if h.fresh.n > 0 {
		return h.fresh.tail
	}
	return h.proven.tail
}

// Owners. A flow has one of 63 numbers, by its hash; flows with one number are one owner. Owner 0 is none.
const (
	owners = 1 << ownerBits
	// freeShare is the part of an endpoint's limit that a flow may always have: a sixteenth.
	freeShare = 16
	// oldAge is the age at which a node is older than any engine's cache, in quarters of the endpoint's limit.
	oldAge = 16
)

// The links of a node: in the lists of the endpoint, and in those of its owner.
const (
	byEndpoint = iota
	byOwner
)

func ownerOf(flow uint64) int { return 1 + int(flow%(owners-1)) }

// push puts a node in the lists that it belongs to.
func (x *Index) push(e *engine, i uint32) {
	n := x.nodes.at(i)
	e.all.of(n).push(&x.nodes, i, byEndpoint)
	if o := n.owner(); o != 0 {
		e.owned[o].of(n).push(&x.nodes, i, byOwner)
	}
}

// pull takes a node out of its lists.
func (x *Index) pull(e *engine, i uint32) {
	n := x.nodes.at(i)
	e.all.of(n).remove(&x.nodes, i, byEndpoint)
	if o := n.owner(); o != 0 {
		e.owned[o].of(n).remove(&x.nodes, i, byOwner)
	}
}

// now returns the time at an endpoint: the blocks that it got so far, in quarters of its limit.
func (e *engine) now() uint64 { return e.got / uint64(max(1, e.limit/4)) & (1<<ageBits - 1) }

// isOld reports whether a node is too old to be in any engine's cache.
func (x *Index) isOld(e *engine, i uint32) bool {
	return (e.now()-x.nodes.at(i).age())&(1<<ageBits-1) > oldAge
}

// shrink brings an endpoint towards its limit, by at most most nodes, and reports whether it has reached it. Proven
// blocks have at most half of the limit, so the rest is always free for fresh ones. The oldest block goes if it is too
// old for any engine; else the oldest block of the flow with the most of its own, if these exceed its free share; else
// the oldest.
func (x *Index) shrink(e *engine, most int) (done bool) {
	for int(e.all.proven.n) > e.limit/2 {
		i := e.all.proven.tail
		x.pull(e, i)
		x.nodes.at(i).key &^= provenMark
		x.push(e, i)
	}
	for most = min(most, e.all.size()-e.limit); most > 0; {
		heavy, least := e.heaviest()
		for drop := true; drop && most > 0; most-- {
			victim := e.all.oldest()
			if heavy != nil && !x.isOld(e, victim) {
				victim = heavy.oldest()
			}
			x.drop(e, victim)
			drop = heavy == nil || heavy.size() > least
		}
	}
	return e.all.size() <= e.limit
}

// heaviest returns the share of the flow with the most nodes of its own, and the number at which another flow has as
// many, or its free share begins. It returns nil if no flow exceeds its free share.
func (e *engine) heaviest() (heavy *share, least int) {
	least = max(1, e.limit/freeShare)
	for i := range e.owned {
		switch h := &e.owned[i]; {
		case heavy == nil && h.size() > least:
			heavy = h
		case heavy != nil && h.size() > heavy.size():
			heavy, least = h, heavy.size()
		case heavy != nil:
			least = max(least, h.size())
		}
	}
	return heavy, least
}
