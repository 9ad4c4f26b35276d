package extproc

import (
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/weir-epp/weir/pkg/flowcontrol"
)

// movable is a lease that remembers where it was moved.
type movable struct {
	Lease
	to []flowcontrol.Endpoint
}

func (m *movable) OnServed(e flowcontrol.Endpoint) { m.to = append(m.to, e) }

// The lease moves only when Envoy names another endpoint that is known.
func TestLeaseMovesToTheEndpointThatServed(t *testing.T) {
	s := &Server{picker: &fakePicker{address: "10.0.0.1:8000", fallbacks: []string{"10.0.0.2:8000"}}}
	for _, test := range []struct {
		name   string
		served *structpb.Value
		want   int
	}{
		{"the first", structpb.NewStringValue("10.0.0.1:8000"), 0},
		{"a fallback", structpb.NewStringValue("10.0.0.2:8000"), 1},
		{"a stranger", structpb.NewStringValue("10.9.9.9:8000"), 0},
		{"nothing", nil, 0},
		{"not a string", structpb.NewNumberValue(7), 0},
	} {
		l := &movable{}
		var metadata *corev3.Metadata
		if test.served != nil {
			metadata = metadataOf("envoy.lb", servedKey, test.served)
		}
		s.served(metadata, "10.0.0.1:8000", l)
		if len(l.to) != test.want || test.want == 1 && l.to[0] != 1 {
			t.Errorf("%s: moved to %v", test.name, l.to)
		}
	}
}
