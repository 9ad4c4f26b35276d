package fairqueue

import "github.com/weir-epp/weir/internal/splitmix"

// shareTree sorts a tier's flows by queued requests over weight. In O(log n) it finds the flow with the most, and the
// least recently displaced flow above a share. It is a treap whose nodes know the least recently displaced flow of
// their subtree; priorities are a hash of the flow's id, so that the same calls build the same tree.
type shareTree struct{ root *flow }

// shareNode is a flow's node in the tree.
type shareNode struct {
	left, right *flow
	least       *flow // least recently displaced in this subtree
}

// priority returns the flow's priority in the treap.
func (f *flow) priority() uint64 { return splitmix.Mix(f.shed.id) }

func shareBefore(f, g *flow) bool {
	if c := compareRatio(int64(f.queued), f.weight, int64(g.queued), g.weight); c != 0 {
		return c < 0
	}
	return f.shed.id < g.shed.id
}

func lessRecent(f, g *flow) *flow {
	if g == nil || f != nil && (f.shed.last < g.shed.last || f.shed.last == g.shed.last && f.shed.id < g.shed.id) {
		return f
	}
	return g
}

func leastOf(f *flow) *flow {
	if f == nil {
		return nil
	}
	return f.shed.node.least
}

func (f *flow) pull() {
	n := &f.shed.node
	n.least = lessRecent(lessRecent(f, leastOf(n.left)), leastOf(n.right))
}

// insert descends to the place of f's priority and splits only the part below.
func (s *shareTree) insert(f *flow) {
	f.shed.node = shareNode{}
	at := &s.root
	for *at != nil && (*at).priority() >= f.priority() {
		n := &(*at).shed.node
		n.least = lessRecent(n.least, f)
		if shareBefore(*at, f) {
			at = &n.right
		} else {
			at = &n.left
		}
	}
	f.shed.node.left, f.shed.node.right = split(*at, f)
	f.pull()
	*at = f
}

func (s *shareTree) remove(f *flow) {
	without(&s.root, f)
	f.shed.node = shareNode{}
}

// leastRecentAbove returns the least recently displaced flow with queued/weight > total/weights; nil if none is above.
func (s *shareTree) leastRecentAbove(total int64, weights Weight) *flow {
	var best *flow
	for f := s.root; f != nil; {
		if compareRatio(int64(f.queued), f.weight, total, weights) > 0 {
			best = lessRecent(lessRecent(f, leastOf(f.shed.node.right)), best)
			f = f.shed.node.left
		} else {
			f = f.shed.node.right
		}
	}
	return best
}

// most returns the flow with the most queued requests over weight, the one tracked first of several; nil if there is
// none.
func (s *shareTree) most() *flow {
	last := s.root
	if last == nil {
		return nil
	}
	for last.shed.node.right != nil {
		last = last.shed.node.right
	}
	most := last
	for f := s.root; f != nil; {
		if compareRatio(int64(f.queued), f.weight, int64(last.queued), last.weight) == 0 {
			most, f = f, f.shed.node.left
		} else {
			f = f.shed.node.right
		}
	}
	return most
}

// split splits the tree into the flows before g and the others.
func split(f, g *flow) (left, right *flow) {
	if f == nil {
		return nil, nil
	}
	n := &f.shed.node
	if shareBefore(f, g) {
		n.right, right = split(n.right, g)
		f.pull()
		return f, right
	}
	left, n.left = split(n.left, g)
	f.pull()
	return left, f
}

// merge joins two trees; everything in left comes before everything in right.
func merge(left, right *flow) *flow {
	switch {
	case left == nil:
		return right
	case right == nil:
		return left
	case left.priority() > right.priority():
		left.shed.node.right = merge(left.shed.node.right, right)
		left.pull()
		return left
	default:
		right.shed.node.left = merge(left, right.shed.node.left)
		right.pull()
		return right
	}
}

// without removes f from the tree below root. Of the nodes above f, only those whose least was f are recomputed.
func without(root **flow, f *flow) {
	n := *root
	switch {
	case n == nil:
		panic("fairqueue: a tracked flow is missing from the share tree")
	case n == f:
		*root = merge(f.shed.node.left, f.shed.node.right)
		return
	case shareBefore(f, n):
		without(&n.shed.node.left, f)
	default:
		without(&n.shed.node.right, f)
	}
	if n.shed.node.least == f {
		n.pull()
	}
}
