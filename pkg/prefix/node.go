package prefix

import "github.com/weir-epp/weir/pkg/scheduling"

// node says that an endpoint has a block. It has 24 bytes.
type node struct {
	key uint64
	at  int32 // the endpoint's ID; its complement if the block is proven
	// Numbers of nodes, 0 for none: of the neighbours in the segment, and of the next one in the table's row.
	newer, older, row uint32
}

// proven reports whether the block has been asked for again since the endpoint got it.
func (n *node) proven() bool { return n.at < 0 }

// is reports whether the node is the one of a block and an endpoint.
func (n *node) is(key uint64, e scheduling.EndpointID) bool {
	return n.key == key && (n.at^(n.at>>31)) == int32(e)
}

// slab is the memory of all nodes, which grows by chunks, so that no node ever moves. Node 0 is never used.
type slab struct {
	chunks []*[chunk]node
	used   uint32 // nodes handed out so far, with node 0
	spare  uint32 // the first of the nodes that were given back, by row
	live   int
}

const chunk = 1 << 12

func newSlab() slab { return slab{used: 1} }

func (s *slab) at(n uint32) *node { return &s.chunks[n/chunk][n%chunk] }

func (s *slab) take() uint32 {
	s.live++
	if n := s.spare; n != 0 {
		s.spare = s.at(n).row
		return n
	}
	if int(s.used/chunk) == len(s.chunks) {
		s.chunks = append(s.chunks, new([chunk]node))
	}
	s.used++
	return s.used - 1
}

func (s *slab) free(n uint32) {
	s.live--
	*s.at(n) = node{row: s.spare}
	s.spare = n
}

// segment is a list of an endpoint's nodes, by when they were last asked for.
type segment struct {
	head, tail uint32 // the newest and the oldest
	n          int
}

// push makes a node the newest.
func (g *segment) push(s *slab, n uint32) {
	x := s.at(n)
	x.newer, x.older = 0, g.head
	if g.head != 0 {
		s.at(g.head).newer = n
	} else {
		g.tail = n
	}
	g.head = n
	g.n++
}

func (g *segment) remove(s *slab, n uint32) {
	x := s.at(n)
	if x.newer != 0 {
		s.at(x.newer).older = x.older
	} else {
		g.head = x.older
	}
	if x.older != 0 {
		s.at(x.older).newer = x.newer
	} else {
		g.tail = x.newer
	}
	g.n--
}
