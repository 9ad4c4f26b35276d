package scheduling

import (
	"slices"
	"strings"
)

// Subset is the set of endpoints that a request is confined to. Set and without entries is not the same as not set:
// the first allows nothing, the second everything.
type Subset struct {
	// Set says that the request carries a subset at all.
	Set bool
	// Entries are addresses with or without a port, in any form that ParseHostPort reads; without a port an entry
	// names all ports of its host.
	Entries []string
}

// Ask is what a request wants of its endpoint.
type Ask struct {
	// Model is the model as the model server knows it (after a rewrite); "" if the request needs none.
	Model string
	// Subset confines the request.
	Subset Subset
}

// canonical returns the entries normalised, sorted and without duplicates, blanks, and those that another entry
// covers (an address next to its whole host).
func (s Subset) canonical() []HostPort {
	entries := make([]HostPort, 0, len(s.Entries))
	for _, text := range s.Entries {
		if entry := ParseHostPort(text); entry != (HostPort{}) {
			entries = append(entries, entry)
		}
	}
	slices.SortFunc(entries, compareHostPorts)
	// A host without a port sorts before its ports, so it is the last one kept when they come.
	kept := entries[:0]
	for _, entry := range entries {
		if n := len(kept); n > 0 && kept[n-1].Host == entry.Host && (kept[n-1].Port == 0 || kept[n-1].Port == entry.Port) {
			continue
		}
		kept = append(kept, entry)
	}
	return kept
}

func compareHostPorts(a, b HostPort) int {
	if c := strings.Compare(a.Host, b.Host); c != 0 {
		return c
	}
	return int(a.Port) - int(b.Port)
}

// covers says whether one of the canonical entries names the address.
func covers(entries []HostPort, address HostPort) bool {
	if _, ok := slices.BinarySearchFunc(entries, HostPort{Host: address.Host}, compareHostPorts); ok {
		return true
	}
	_, ok := slices.BinarySearchFunc(entries, address, compareHostPorts)
	return ok
}
