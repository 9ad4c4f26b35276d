package extproc

import (
	"fmt"
	"math/bits"
	"strings"
)

// Weir trusts the headers that say who sends a request, how urgent it is and until when, which model it is for and what it
// costs, because a gateway sets or strips them. If one of them comes twice, somebody appended it to what the client sent:
// nobody can tell which of the two is the gateway's, so the request is refused (ADR 0017). Envoy joins the values of a few
// headers that it knows, such as its own deadline, with commas. Where no value can contain a comma, one counts as a
// second header.

// synonyms are the ecosystem's names for identity and objective, newer and older ones. They are read only if the
// configuration names them, and never reach the model server.
var synonyms = []struct {
	slot slot
	key  string // of the configuration, which may name the header
}{
	{slotFairness, "flows.key"},
	{slotOldFairness, "flows.key"},
	{slotObjective, "criticality.objectiveHeaders"},
	{slotOldObjective, "criticality.objectiveHeaders"},
}

// forgiving reports whether a class header may come twice: SMG and Dynamo take the first value of theirs, which clients
// may send.
func forgiving(header string) bool {
	header = strings.ToLower(header)
	return header == "x-smg-priority" || strings.HasPrefix(header, "x-dynamo-")
}

// sortHeaders derives single, scalar and unread, once every configured header has its slot.
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
	c.policyClass.single(&c.names, func(s slot) { add(&c.single, s) })
	add(&c.scalar, c.modelHeader)
	add(&c.scalar, c.costHeader)
	add(&c.scalar, c.inputHeader)
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

// ambiguous returns the error of a request that says something trusted twice, or nil.
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

// warnUnread warns once of each synonym that a request has and the configuration does not name. Without a warning, nobody
// would learn why a tenant ended up in another flow.
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
