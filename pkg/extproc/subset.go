package extproc

import (
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/structpb"
)

// Where the endpoint-picker protocol has the subset hint: dynamic metadata that the data plane sets.
const (
	subsetNamespace = "envoy.lb.subset_hint"
	subsetKey       = "x-gateway-destination-endpoint-subset"
)

// Subset is the subset hint: the only endpoints that may be picked.
type Subset struct {
	// Set says that there is a hint. Without one the whole pool may be picked from.
	Set bool
	// Members are addresses with or without a port, as they came, without blanks around them; the Picker reads
	// them. Set and without members: nothing may be picked.
	Members []string
}

// subsetOf reads the hint from a request's metadata. A value of a form that nobody speaks names nobody: it must not
// open the whole pool.
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

// add takes in a comma-separated list.
func (s *Subset) add(list string) {
	for member := range strings.SplitSeq(list, ",") {
		if member = strings.TrimSpace(member); member != "" {
			s.Members = append(s.Members, member)
		}
	}
}
