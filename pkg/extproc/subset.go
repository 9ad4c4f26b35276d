package extproc

import (
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/structpb"
)

// The endpoint-picker protocol has the subset hint in this field of dynamic metadata, which the data plane sets.
const (
	subsetNamespace = "envoy.lb.subset_hint"
	subsetKey       = "x-gateway-destination-endpoint-subset"
)

// Subset is the subset hint: the only endpoints that may be picked.
type Subset struct {
	// Set reports whether there is a hint. Without one any endpoint of the pool may be picked.
	Set bool
	// Members are addresses with or without a port, as received but without surrounding blanks. If Set is true and there
	// are no members, no endpoint may be picked.
	Members []string
}

// subsetOf reads the hint from a request's metadata. A value that is neither a string nor a list has no members: it must
// not open the whole pool.
func subsetOf(m *corev3.Metadata) Subset {
	hint, ok := m.GetFilterMetadata()[subsetNamespace]
	if !ok {
		return Subset{}
	}
	value, ok := hint.GetFields()[subsetKey]
	if !ok {
		return Subset{}
	}
	s := Subset{Set: true}
	switch k := value.GetKind().(type) {
	case *structpb.Value_StringValue:
		s.add(k.StringValue)
	case *structpb.Value_ListValue:
		for _, v := range k.ListValue.GetValues() {
			s.add(v.GetStringValue())
		}
	}
	return s
}

// add adds the members of a comma-separated list.
func (s *Subset) add(list string) {
	for member := range strings.SplitSeq(list, ",") {
		if member = strings.TrimSpace(member); member != "" {
			s.Members = append(s.Members, member)
		}
	}
}
