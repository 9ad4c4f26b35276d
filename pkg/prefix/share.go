package prefix

// list is a list of nodes, by when they were last asked for.
type list struct {
	head, tail uint32 // the newest and the oldest
	n          int32
}

// push makes a node the newest. by says which of its links the list has.
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

// share is the nodes of an endpoint, or those of them that have one owner. No block in either list is older there than one
// that follows it in a prompt, and no fresh one is followed by a proven one.
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

// Owners. A flow is one of 63, by its hash; those with one number are one flow here. Owner 0 is nobody.
const (
	owners = 1 << ownerBits
	// freeShare is the part of an endpoint's limit that a flow may have whatever others need.
	freeShare = 16
	// oldAge is the age from which a node is older than any engine's cache, in quarters of the endpoint's limit.
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

// isOld reports whether so many other blocks came since a node was asked for that no engine has it any more.
func (x *Index) isOld(e *engine, i uint32) bool {
	return (e.now()-x.nodes.at(i).age())&(1<<ageBits-1) > oldAge
}

// shrink brings an endpoint towards its limit, by so many nodes at most, and reports whether it is there. Half of the limit
// is the most that proven blocks may have, so the rest is always there for fresh ones. The oldest block goes if it is too
// old for any engine; else the oldest of the flow that has most of its own, if that is more than its free share; else the
// oldest.
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

// heaviest returns the share of the flow that has most nodes of its own, and the number of them at which another one has
// as many, or its free share begins. It returns nil if none has more than its free share.
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
