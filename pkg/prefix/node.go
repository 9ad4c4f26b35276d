package prefix

import "github.com/weir-epp/weir/pkg/scheduling"

// node is a block at an endpoint. It has 32 bytes.
type node struct {
	key   uint64 // the first 48 bits of the block's key, and below them the marks
	at    scheduling.EndpointID
	row   uint32 // the next node in the table's row; 0: none
	links [2]links
}

// links are a node's neighbours in a list, by number; 0: none.
type links struct{ newer, older uint32 }

// The marks of a node.
const (
	provenMark = 1 << 0 // it is among the proven ones
	againMark  = 1 << 1 // it was ever asked for again
	lastMark   = 1 << 2 // it was the last block of the prompt that brought it

	ownerShift, ownerBits = 3, 6 // the number of its owner; 0: several flows have asked for it
	ageShift, ageBits     = 9, 7 // when it was last asked for, in quarters of the endpoint's limit

	marks = 1<<16 - 1
)

// is reports whether the node is this block at this endpoint.
func (n *node) is(key uint64, e scheduling.EndpointID) bool { return (n.key^key)>>16 == 0 && n.at == e }

func (n *node) has(mark uint64) bool { return n.key&mark != 0 }

func (n *node) owner() int { return int(n.key >> ownerShift & (1<<ownerBits - 1)) }

func (n *node) age() uint64 { return n.key >> ageShift & (1<<ageBits - 1) }

// touched notes the flow that asks for the node, and the time.
func (n *node) touched(owner int, now uint64) {
	n.key &^= (1<<ownerBits-1)<<ownerShift | (1<<ageBits-1)<<ageShift
	n.key |= uint64(owner)<<ownerShift | now<<ageShift
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
