package extproc

import (
	"fmt"
	"math/bits"
	"strings"
)

// Headers that say who asks, how urgently, until when, for which model or how costly are believed, because a gateway sets
// or strips them. One that comes twice has been appended to what the client sent: nobody can tell which of the two is the
// gateway's word, so the request is refused (ADR 0017). Envoy joins the values of a few headers that it knows, such as
// its own deadline, by commas: where no value can have a comma, one is as good as a second header.

// synonyms are the ecosystem's names of identity and objective, newer and older. They are read only where the
// configuration names them, and never reach the upstream.
var synonyms = []struct {
	slot slot
	key  string // where to name it
}{
	{slotFairness, "flows.key"},
	{slotOldFairness, "flows.key"},
	{slotObjective, "criticality.objectiveHeaders"},
	{slotOldObjective, "criticality.objectiveHeaders"},
}

// forgiving reports whether a class header is one whose second value is no error: SMG and Dynamo take the first of
// theirs, which clients may send.
func forgiving(header string) bool {
	header = strings.ToLower(header)
	return header == "x-smg-priority" || strings.HasPrefix(header, "x-dynamo-")
}

// sortHeaders derives single, scalar and unread, when every header that is configured has its slot.
func (c *compiled) sortHeaders() {
	add := func(set *uint64, s slot) {
		if s != noSlot {
			*set |= 1 << s
		}
	}
	for i := range c.flow {
		if c.flow[i].kind == fromHeader {
			add(&c.single, c.flow[i].slot)
		}
	}
	for _, s := range c.objectiveIn {
		add(&c.single, s)
	}
	if !forgiving(c.Criticality.Header) {
		add(&c.single, c.classHeader)
	}
	add(&c.scalar, c.modelHeader)
	add(&c.scalar, c.costHeader)
	for _, d := range c.deadlines {
		add(&c.scalar, d.slot)
	}
	for _, s := range synonyms {
		if c.single>>s.slot&1 == 0 {
			add(&c.unread, s.slot)
		}
	}
	c.single |= c.scalar
}

// ambiguous is the error of a request that says one thing twice, or nil.
func (c *compiled) ambiguous(h *headers) error {
	if twice := h.twice & c.single; twice != 0 {
		name := c.names.names[bits.TrailingZeros64(twice)]
		return badRequest(name, fmt.Sprintf("The header %q is there more than once.", name))
	}
	for rest := h.present & c.scalar; rest != 0; rest &= rest - 1 {
		s := bits.TrailingZeros64(rest)
		if strings.Contains(h.values[s], ",") {
			name := c.names.names[s]
			return badRequest(name, fmt.Sprintf("The header %q has more than one value.", name))
		}
	}
	return nil
}

// warnUnread says once of each synonym that a request brought it and nobody reads it: a tenant that vanishes into another
// flow should not do so in silence.
func (s *Server) warnUnread(c *compiled, h *headers) {
	unread := h.present & c.unread &^ s.unreadSaid.Load()
	if unread == 0 {
		return
	}
	for _, synonym := range synonyms {
		if bit := uint64(1) << synonym.slot; unread&bit != 0 && s.unreadSaid.Or(bit)&bit == 0 {
			name := fixedNames[synonym.slot]
			entry := name
			if synonym.key == "flows.key" {
				entry = "header:" + name
			}
			s.once.warn(s.log, name, "requests come with the header "+name+", which is not read, and removed before the "+
				"model server: if your gateway sets it, and clients cannot, name it in "+synonym.key,
				"header", name, "key", synonym.key, "entry", entry)
		}
	}
}
