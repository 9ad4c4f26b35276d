package extproc

import (
	"fmt"
	"slices"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/weir-epp/weir/pkg/flowcontrol"
)

// movable is a lease that records its moves.
type movable struct {
	Lease
	to []flowcontrol.Endpoint
}

func (m *movable) OnServed(e flowcontrol.Endpoint, _ int) { m.to = append(m.to, e) }

// The controller learns of another endpoint named by Envoy, even if Weir does not know it.
func TestLeaseMovesToTheEndpointThatServed(t *testing.T) {
	picker := &fakePicker{address: "10.0.0.1:8000", fallbacks: []string{"10.0.0.2:8000"}}
	s := &shared{picker: picker, elsewhere: newElsewhere(logr.Discard(), picker)}
	for _, test := range []struct {
		name   string
		served *structpb.Value
		want   []flowcontrol.Endpoint

		elsewhere bool
	}{
		{"the first", structpb.NewStringValue("10.0.0.1:8000"), nil, false},
		{"a fallback", structpb.NewStringValue("10.0.0.2:8000"), []flowcontrol.Endpoint{1}, true},
		{"a stranger", structpb.NewStringValue("10.9.9.9:8000"), []flowcontrol.Endpoint{flowcontrol.NoEndpoint}, true},
		{"nothing", nil, nil, false},
		{"not a string", structpb.NewNumberValue(7), nil, false},
	} {
		l := &movable{}
		var metadata *corev3.Metadata
		if test.served != nil {
			metadata = metadataOf("envoy.lb", servedKey, test.served)
		}
		before := s.elsewhere.of("10.0.0.1:8000")
		s.elsewhere.move(metadata, "10.0.0.1:8000", l, 200)
		if counted := s.elsewhere.of("10.0.0.1:8000") > before; counted != test.elsewhere {
			t.Errorf("%s: counted as served elsewhere: %v", test.name, counted)
		}
		if !slices.Equal(l.to, test.want) {
			t.Errorf("%s: moved to %v", test.name, l.to)
		}
	}
}

// Weir warns once of each endpoint, with the remedy. It does not show an endpoint that has left the pool, and bounds
// the number of endpoints.
func TestServedElsewhere(t *testing.T) {
	b := newBench(t, nil)
	b.picker.fallbacks = []string{"10.0.0.2:8000"}
	e := b.server.elsewhere
	for range 3 {
		e.count("10.0.0.1:8000", "10.0.0.2:8000")
	}
	e.count("10.0.0.2:8000", "10.0.0.1:8000")
	if n := b.logged.has("WARNING: Envoy served a request elsewhere"); n != 2 {
		t.Errorf("%d warnings for two endpoints", n)
	}
	if n := b.logged.has(`"picked"="10.0.0.1:8000" "served"="10.0.0.2:8000"`); n != 1 {
		t.Errorf("%d warnings name the first one", n)
	}
	shown := func() map[string]float64 {
		t.Helper()
		r := prometheus.NewRegistry()
		r.MustRegister(e)
		families, err := r.Gather()
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]float64{}
		for _, f := range families {
			for _, m := range f.GetMetric() {
				got[m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue()
			}
		}
		return got
	}
	if got := shown(); len(got) != 2 || got["10.0.0.1:8000"] != 3 || got["10.0.0.2:8000"] != 1 {
		t.Errorf("shown: %v", got)
	}
	b.picker.fallbacks = nil // it has left the pool
	if got := shown(); len(got) != 1 || got["10.0.0.1:8000"] != 3 {
		t.Errorf("shown: %v", got)
	}
	for i := range 2 * maxElsewhere {
		address := fmt.Sprintf("10.1.%d.%d:8000", i>>8, i&255)
		b.picker.fallbacks = append(b.picker.fallbacks[:0], address) // the pool has only this one now
		e.count(address, "x")
	}
	if n := len(e.counts); n > maxElsewhere {
		t.Errorf("%d are counted by themselves", n)
	}
	if e.others != 0 {
		t.Errorf("%d in others, although most are gone", e.others)
	}
}
