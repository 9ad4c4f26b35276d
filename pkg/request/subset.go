package request

import "strings"

// The field of dynamic metadata with the subset hint in the endpoint-picker protocol. The data plane sets it.
const (
	SubsetNamespace = "envoy.lb.subset_hint"
	SubsetKey       = "x-gateway-destination-endpoint-subset"
)

// Subset is the subset hint: the only endpoints that may be picked.
type Subset struct {
	// Set reports whether there is a hint. Without one any endpoint of the pool may be picked.
	Set bool
	// Members are addresses with or without a port, as received but without surrounding blanks. If Set is true and there
	// are no members, no endpoint may be picked.
	Members []string
}

// Add adds the members of a comma-separated list.
func (s *Subset) Add(list string) {
	for member := range strings.SplitSeq(list, ",") {
		if member = strings.TrimSpace(member); member != "" {
			s.Members = append(s.Members, member)
		}
	}
}
