package eds

import (
	"net/netip"
	"slices"
	"time"
)

// MaxDraining is the largest number of endpoints draining at a time; beyond it the first removed ones are dropped at
// once.
const MaxDraining = 10_000

// Kept is Weir's list plus the endpoints recently removed from it. Its zero value is an empty list, and drops removed
// endpoints at once.
type Kept struct {
	Grace time.Duration // for which a removed endpoint drains

	listed   []netip.AddrPort
	draining []leaving // in the order of their ends
}

// leaving is a draining endpoint.
type leaving struct {
	address netip.AddrPort
	until   time.Time
}

// Set replaces the list. Endpoints missing from it drain from now on; returning ones stop draining.
func (k *Kept) Set(listed []netip.AddrPort, now time.Time) {
	present := make(map[netip.AddrPort]bool, len(listed))
	for _, address := range listed {
		present[address] = true
	}
	k.draining = slices.DeleteFunc(k.draining, func(l leaving) bool { return present[l.address] })
	for _, address := range k.listed {
		if !present[address] {
			k.draining = append(k.draining, leaving{address, now.Add(k.Grace)})
		}
	}
	if excess := len(k.draining) - MaxDraining; excess > 0 {
		k.draining = slices.Delete(k.draining, 0, excess)
	}
	k.listed = slices.Clone(listed)
}

// Hosts returns the endpoints of the file, the draining ones last, and the time of the next change; zero if none
// drains.
func (k *Kept) Hosts(now time.Time) (hosts []Host, next time.Time) {
	gone := 0
	for gone < len(k.draining) && !k.draining[gone].until.After(now) {
		gone++
	}
	k.draining = slices.Delete(k.draining, 0, gone)
	for _, address := range k.listed {
		hosts = append(hosts, Host{Address: address})
	}
	for _, l := range k.draining {
		hosts = append(hosts, Host{Address: l.address, Draining: true})
	}
	if len(k.draining) > 0 {
		next = k.draining[0].until
	}
	return hosts, next
}
