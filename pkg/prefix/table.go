package prefix

import (
	"math/bits"

	"github.com/weir-epp/weir/pkg/scheduling"
)

// table finds nodes by block and endpoint. It is a hash table with a row of nodes for each of its heads.
type table struct {
	heads []uint32
	shift uint8
	n     int
}

const firstHeads = 1 << 10

func newTable() table {
	return table{heads: make([]uint32, firstHeads), shift: 64 - uint8(bits.TrailingZeros(firstHeads))}
}

func (t *table) row(key uint64, e scheduling.EndpointID) *uint32 {
	return &t.heads[((key>>16^uint64(e)*0xd6e8feb86659fd93)*0x9e3779b97f4a7c15)>>t.shift]
}

func (t *table) find(s *slab, key uint64, e scheduling.EndpointID) uint32 {
	n := *t.row(key, e)
	for n != 0 {
		x := s.at(n)
		if x.is(key, e) {
			break
		}
		n = x.row
	}
	return n
}

// add adds a node that the table does not have. With as many nodes as heads it doubles these.
func (t *table) add(s *slab, n uint32) {
	if t.n == len(t.heads) {
		t.grow(s)
	}
	t.n++
	t.link(s, n)
}

func (t *table) link(s *slab, n uint32) {
	x := s.at(n)
	row := t.row(x.key, x.at)
	x.row = *row
	*row = n
}

func (t *table) grow(s *slab) {
	before := t.heads
	t.heads = make([]uint32, 2*len(before))
	t.shift--
	for _, n := range before {
		for n != 0 {
			next := s.at(n).row
			t.link(s, n)
			n = next
		}
	}
}

func (t *table) remove(s *slab, n uint32) {
	x := s.at(n)
	at := t.row(x.key, x.at)
	for *at != n {
		at = &s.at(*at).row
	}
	*at = x.row
	t.n--
}

// counts counts the endpoints of each block. It is an open hash table with 48 bits of a block's key and a saturating
// count of 16 bits.
type counts struct {
	cells []uint64
	shift uint8
	n     int
}

const mostHolders = 1<<16 - 1

func newCounts() counts {
	return counts{cells: make([]uint64, firstHeads), shift: 64 - uint8(bits.TrailingZeros(firstHeads))}
}

// cell returns the index of the block's cell, or of the empty one where it would be.
func (c *counts) cell(key uint64) int {
	i := int(key >> c.shift)
	for c.cells[i] != 0 && c.cells[i]>>16 != key>>16 {
		if i++; i == len(c.cells) {
			i = 0
		}
	}
	return i
}

func (c *counts) of(key uint64) int { return int(c.cells[c.cell(key)] & mostHolders) }

func (c *counts) add(key uint64) {
	if 4*c.n >= 3*len(c.cells) {
		c.grow()
	}
	i := c.cell(key)
	switch cell := c.cells[i]; {
	case cell == 0:
		c.cells[i] = key>>16<<16 | 1
		c.n++
	case cell&mostHolders < mostHolders:
		c.cells[i]++
	}
}

func (c *counts) grow() {
	before := c.cells
	c.cells = make([]uint64, 2*len(before))
	c.shift--
	for _, cell := range before {
		if cell != 0 {
			c.cells[c.cell(cell)] = cell
		}
	}
}

func (c *counts) subtract(key uint64) {
	i := c.cell(key)
	switch c.cells[i] & mostHolders {
	case 0, mostHolders:
	case 1:
		c.empty(i)
	default:
		c.cells[i]--
	}
}

// empty removes a cell, and moves the cells after it that would no longer be found.
func (c *counts) empty(i int) {
	c.n--
	for j := i; ; {
		if j++; j == len(c.cells) {
			j = 0
		}
		cell := c.cells[j]
		if cell == 0 {
			break
		}
		home := int(cell >> c.shift)
		if between := (i < home && home <= j) || (j < i && (home <= j || home > i)); !between {
			c.cells[i] = cell
			i = j
		}
	}
	c.cells[i] = 0
}
