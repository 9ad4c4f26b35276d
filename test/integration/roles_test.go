package integration

import (
	"testing"

	"github.com/weir-epp/weir/internal/modelsim"
)

// inRoles makes x-tenant the flow, and x-role its role, as a gateway would set both.
const inRoles = `fairRequestQueue: { queueTTL: 10m, totalCapacity: 1000, flowCapacity: 200 }
flows: { key: ["header:x-tenant"], role: ["header:x-role"] }
roles: { student: { weight: 1 }, faculty: { weight: 3 }, guest: { maxInFlight: 1 } }
`

func (a ask) as(role string) ask {
	a.header = append(a.header, "x-role", role)
	return a
}

// Users with constant backlogs are served by the weights of their roles, which come in a header. A user whose requests
// have two roles gains nothing by the greater one. A request with two roles is refused, since the second one has no
// known source.
func TestRolesOnTheWire(t *testing.T) {
	t.Parallel()
	v := newValve()
	s := start(t, setup{models: v.one(), config: single + inRoles})
	s.begin(from("first").as("student"))
	s.epp.waitFor(1, "weir_stock_level")
	mixed := func(i int) string { return []string{"faculty", "student"}[i%2] }
	for i := range 60 {
		s.begin(from("ann").as("faculty"))
		s.begin(from("sue").as("student"))
		s.begin(from("mix").as(mixed(i)))
	}
	s.epp.waitFor(180, "weir_queue_length")
	v.pass(51)
	s.epp.waitFor(51, "weir_requests_total", "outcome", "dispatched")
	served := map[string]int{}
	for _, tenant := range tenants(s.models[0])[1:51] {
		served[tenant]++
	}
	if ann, sue, mix := served["ann"], served["sue"], served["mix"]; ann < 29 || ann > 31 || sue < 9 || sue > 11 || mix < 9 || mix > 11 {
		t.Errorf("of the first 50: %v, want 30, 10 and 10", served)
	}
	wantRejection(t, s.send(from("sue").as("student").as("faculty")),
		rejection{status: 400, reason: "bad-request", kind: "invalid_request_error", param: "x-role", final: true})
	v.open()
	s.epp.settled()
}

// A user has as many requests in flight as its role permits, however many slots are free.
func TestCapOfARoleOnTheWire(t *testing.T) {
	t.Parallel()
	v := newValve()
	s := start(t, setup{models: []modelsim.Config{v.on(recorded(8))}, config: inRoles +
		"requestQueueController: { watermarkPerBackend: 8, lowerBoundPerBackend: 8, upperBoundPerBackend: 8 }\n"})
	for range 3 {
		s.begin(from("gus").as("guest"))
		s.begin(from("sue").as("student"))
	}
	s.epp.waitFor(4, "weir_stock_level")
	s.epp.waitFor(2, "weir_queue_length")
	v.open()
	s.epp.settled()
}
