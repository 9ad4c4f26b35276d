package config

import (
	"strings"
	"testing"

	"github.com/weir-epp/weir/pkg/scheduling"
)

// The models and reservations of a configuration are compared with the endpoints.
func TestEndpointWarnings(t *testing.T) {
	serving := func(slots int, models ...string) scheduling.Endpoint {
		return scheduling.Endpoint{Slots: slots, Models: models}
	}
	const models = "models: [ { name: chat, targets: [ { name: v1 }, { name: v2 } ] }, { name: plain } ]\n"
	floor := func(n string) string {
		return "profile: recommended\ntiers: [ { name: critical, reservedFloor: " + n + " }, { name: default, reservedPerSlot: 0.5 } ]\n"
	}
	for _, test := range []struct {
		name, text string
		endpoints  []scheduling.Endpoint
		want       string
	}{
		{"nothing is known", models, nil, ""},
		{"all are listed", models, []scheduling.Endpoint{serving(0, "v1", "plain"), serving(0, "v2", "other")}, ""},
		{"one serves any", models, []scheduling.Endpoint{serving(0, "v1"), serving(0)}, ""},
		{"a target", models, []scheduling.Endpoint{serving(0, "v1", "plain")}, "models[0].targets[1].name"},
		{"a model's own name counts for nothing beside its targets", models, []scheduling.Endpoint{serving(0, "chat", "v1", "v2")}, "models[1].name"},
		{"the reservations fit", floor("64"), []scheduling.Endpoint{serving(0), serving(64)}, ""},
		{"not at the real slots", floor("65"), []scheduling.Endpoint{serving(64), serving(64)}, "tiers"},
		{"nor at the bounds of those that report none", floor("65"), []scheduling.Endpoint{serving(0), serving(0)}, "tiers"},
		{"with more endpoints they do", floor("65"), []scheduling.Endpoint{serving(64), serving(64), serving(64)}, ""},
		{"too large a number of slots", floor("65"), []scheduling.Endpoint{serving(1 << 40)}, ""},
		{"nothing is reserved where nothing queues", floor("65") + "requestQueueController: { enabled: false }\n", []scheduling.Endpoint{serving(1)}, ""},
		{"nor where nothing waits", floor("65") + "requestQueueController: { slotsPerBackend: unbounded }\n", []scheduling.Endpoint{serving(0)}, ""},
		{
			"slots beside an unbounded stock", "requestQueueController: { slotsPerBackend: unbounded }\n",
			[]scheduling.Endpoint{serving(8)},
			"requestQueueController.slotsPerBackend",
		},
	} {
		d, err := Load(source(test.text))
		if err != nil {
			t.Fatalf("%s: %v", test.name, err)
		}
		var paths []string
		for _, w := range append(d.EndpointWarnings(test.endpoints), d.ReservationWarnings(test.endpoints)...) {
			paths = append(paths, w.Path)
		}
		if got := strings.Join(paths, " "); got != test.want {
			t.Errorf("%s: warned about %q, want %q", test.name, got, test.want)
		}
	}
}
