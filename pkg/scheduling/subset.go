package scheduling

import (
	"slices"
	"strings"
)

// Subset is the set of endpoints that a request is confined to. A set Subset without entries allows no endpoint; an
// unset one allows all.
type Subset struct {
	// Set reports whether the request has a subset at all.
	Set bool
	// Entries are addresses with or without a port, in any form that ParseHostPort accepts; an entry without a port
	// means all ports of its host.
	Entries []string
}

// Ask is what a request needs of its endpoint.
type Ask struct {
	// Model is the model's name at the model server, after a rewrite; "" if the request needs none.
	Model string
	// Adapter is true if Model is a LoRA adapter, which engines load besides their base model.
	Adapter bool
	// Subset confines the request.
	Subset Subset
	// Needs are its needs besides its model.
	Needs Needs
}

// canonical returns the entries normalised and sorted, without duplicates, blanks, and entries that another one covers
// (an address beside its whole host).
func (s Subset) canonical() []HostPort {
	entries := make([]HostPort, 0, len(s.Entries))
	for _, text := range s.Entries {
		if entry := ParseHostPort(text); entry != (HostPort{}) {
			entries = append(entries, entry)
		}
	}
	slices.SortFunc(entries, compareHostPorts)
	// A host without a port sorts before its ports, so it is the last entry kept when they follow.
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

// covers reports whether one of the canonical entries names the address.
func covers(entries []HostPort, address HostPort) bool {
	if _, ok := slices.BinarySearchFunc(entries, HostPort{Host: address.Host}, compareHostPorts); ok {
		return true
	}
	_, ok := slices.BinarySearchFunc(entries, address, compareHostPorts)
	return ok
}
