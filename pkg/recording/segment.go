package recording

import (
	"encoding/binary"
	"time"

	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/scheduling"
)

// A segment is a sequence of complete events. In it, a text or constraint is written once, and later as its number. A
// time is the difference to the time before; the first is relative to the recording's base. So the state at its
// beginning suffices to read a segment.
type segment struct {
	buf         []byte
	base        time.Time
	last        int64 // the last time written, in nanoseconds since base
	texts       map[textKey]uint64
	constraints map[constraintKey]uint64

	// The last constraint and its number.
	lastConstraint constraintKey
	lastNumber     uint64
}

// textKey identifies a text. The same text hidden and not hidden has two keys: a model's name may also be a flow's.
type textKey struct {
	text   string
	hidden bool
}

// constraintKey identifies a constraint. Its lane's name includes the subset.
type constraintKey struct {
	model, lane       string
	adapter, confined bool
	needs             scheduling.Needs
}

func newSegment(base time.Time) *segment {
	return &segment{base: base, texts: map[textKey]uint64{}, constraints: map[constraintKey]uint64{}}
}

// restart begins a new segment in buf.
func (s *segment) restart(buf []byte) {
	s.buf, s.last = buf[:0], 0
	clear(s.texts)
	clear(s.constraints)
}

// begin writes the kind and the time of a record; the zero time means none.
func (s *segment) begin(k kind, now time.Time) {
	if now.IsZero() {
		s.buf = append(s.buf, byte(k))
		return
	}
	at := int64(now.Sub(s.base))
	s.buf = binary.AppendVarint(append(s.buf, byte(k)|timed), at-s.last)
	s.last = at
}

func (s *segment) number(n uint64) { s.buf = binary.AppendUvarint(s.buf, n) }

func (s *segment) signed(n int64) { s.buf = binary.AppendVarint(s.buf, n) }

func (s *segment) flag(set bool) {
	if set {
		s.number(1)
	} else {
		s.number(0)
	}
}

func (s *segment) bytes(b []byte) {
	s.number(uint64(len(b)))
	s.buf = append(s.buf, b...)
}

// text writes a text, replaced by shown: its number and, the first time, the text.
func (s *segment) text(t string, shown func(string) string) {
	key := textKey{t, shown != nil}
	n, known := s.texts[key]
	if !known {
		n = uint64(len(s.texts))
		s.texts[key] = n
	}
	s.number(n)
	if !known {
		if shown != nil {
			t = shown(t)
		}
		s.number(uint64(len(t)))
		s.buf = append(s.buf, t...)
	}
}

// isAdapter is set in a constraint's number if its model is an adapter; the bits above are its needs.
const isAdapter = 1

// constraint writes a query's constraint like a text: its number and, the first time, the constraint.
func (s *segment) constraint(r scheduling.Recalled) {
	key := constraintKey{r.Model, r.Lane, r.Adapter, r.Confined, r.Needs}
	if len(s.constraints) > 0 && key == s.lastConstraint { // as for most requests
		s.number(s.lastNumber)
		return
	}
	n, known := s.constraints[key]
	if !known {
		n = uint64(len(s.constraints))
		s.constraints[key] = n
	}
	s.lastConstraint, s.lastNumber = key, n
	s.number(n)
	if known {
		return
	}
	s.bytes([]byte(r.Model))
	s.bytes([]byte(r.Lane))
	asked := uint64(r.Needs) << 1
	if r.Adapter {
		asked |= isAdapter
	}
	s.number(asked)
	if !r.Confined {
		s.number(0)
		return
	}
	s.number(uint64(len(r.Subset)) + 1)
	for _, entry := range r.Subset {
		s.bytes([]byte(entry.String()))
	}
}

// reader reads a segment.
type reader struct {
	in          []byte
	at          int // number of bytes read
	last        int64
	texts       []string
	constraints []scheduling.Recalled
	broken      bool
	copy        *renamer // gets what is read; nil: nothing does
}

func (r *reader) more() bool { return !r.broken && r.at < len(r.in) }

// next reads the kind and the time of a record.
func (r *reader) next(base time.Time) (k kind, now time.Time) {
	b := r.octet()
	if b&timed != 0 {
		r.last += r.signed()
		now = base.Add(time.Duration(r.last))
	}
	return kind(b &^ timed), now
}

func (r *reader) octet() byte {
	if r.at >= len(r.in) {
		r.broken = true
		return 0
	}
	r.pass(1)
	return r.in[r.at-1]
}

// pass goes on by n bytes.
func (r *reader) pass(n int) {
	if r.copy != nil {
		r.copy.buf = append(r.copy.buf, r.in[r.at:r.at+n]...)
	}
	r.at += n
}

func (r *reader) number() uint64 {
	n, size := binary.Uvarint(r.in[r.at:])
	return r.took(n, size)
}

func (r *reader) flag() bool { return r.index(2) == 1 }

func (r *reader) signed() int64 {
	n, size := binary.Varint(r.in[r.at:])
	return int64(r.took(uint64(n), size))
}

func (r *reader) took(n uint64, size int) uint64 {
	if size <= 0 {
		r.broken = true
		return 0
	}
	r.pass(size)
	return n
}

// index reads a number below limit.
func (r *reader) index(limit int) int {
	n := r.number()
	if n >= uint64(limit) {
		r.broken = true
		return 0
	}
	return int(n)
}

// outcome reads an outcome.
func (r *reader) outcome() dispatch.Outcome { return dispatch.Outcome(r.index(dispatch.NumOutcomes)) }

// count reads a number of things that take at least this many bytes each.
func (r *reader) count(least int) int { return r.index((len(r.in)-r.at)/least + 1) }

func (r *reader) fixed(n int) []byte {
	if n > len(r.in)-r.at {
		r.broken = true
		return nil
	}
	r.pass(n)
	return r.in[r.at-n : r.at]
}

func (r *reader) bytes() []byte {
	return r.fixed(r.index(len(r.in) - r.at + 1))
}

func (r *reader) anyText() string {
	n := r.index(len(r.texts) + 1)
	if n == len(r.texts) && !r.broken {
		r.texts = append(r.texts, string(r.bytes()))
	}
	if r.broken {
		return ""
	}
	return r.texts[n]
}

func (r *reader) constraint() (c scheduling.Recalled) {
	n := r.index(len(r.constraints) + 1)
	if n < len(r.constraints) {
		return r.constraints[n]
	}
	c.Model, c.Lane = string(r.bytes()), string(r.bytes())
	asked := r.index((int(scheduling.AllNeeds) + 1) << 1)
	c.Adapter, c.Needs = asked&isAdapter != 0, scheduling.Needs(asked>>1)
	if entries := r.count(1); entries > 0 {
		c.Confined = true
		for range entries - 1 {
			c.Subset = append(c.Subset, scheduling.ParseHostPort(string(r.bytes())))
			if r.broken {
				break
			}
		}
	}
	r.constraints = append(r.constraints, c)
	return c
}
