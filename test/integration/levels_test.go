package integration

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weir-epp/weir/internal/modelsim"
)

// overUsers makes x-org the tenant and x-user its user, as a gateway would set both.
const overUsers = `fairRequestQueue: { queueTTL: 10m, totalCapacity: 1000, flowCapacity: 200 }
flows: { levels: [ { key: ["header:x-org"] }, { key: ["header:x-user"], weights: { heavy: 3 } } ] }
`

// user is a request of a tenant's user. The model server records both.
func user(org, name string) ask {
	return ask{header: []string{"x-tenant", org + "/" + name, "x-org", org, "x-user", name}}
}

// A tenant with 50 users gets the service of a tenant with one. Within a tenant, weights of 3:1 count. A request with
// two users is refused, since the second one has no known source.
func TestLevelsOnTheWire(t *testing.T) {
	t.Parallel()
	v := newValve()
	s := start(t, setup{models: v.one(), config: single + overUsers})
	s.begin(user("first", "u"))
	s.epp.waitFor(1, "weir_stock_level")
	for i := range 50 {
		s.begin(user("crowd", fmt.Sprint("user-", i)))
		s.begin(user("alone", "u"))
		s.begin(user("weighted", []string{"heavy", "light"}[i%2]))
	}
	s.epp.waitFor(150, "weir_queue_length")
	v.pass(73)
	s.epp.waitFor(73, "weir_requests_total", "outcome", "dispatched")
	served := map[string]int{}
	for _, tag := range tenants(s.models[0])[1:73] {
		org, name, _ := strings.Cut(tag, "/")
		served[org]++
		if org == "weighted" {
			served[name]++
		}
	}
	for who, want := range map[string]int{"crowd": 24, "alone": 24, "weighted": 24, "heavy": 18, "light": 6} {
		if n := served[who]; n < want-1 || n > want+1 {
			t.Errorf("of the first 72, %d of %s, want %d: %v", n, who, want, served)
		}
	}
	twice := user("a", "u")
	twice.header = append(twice.header, "x-user", "v")
	wantRejection(t, s.send(twice), rejection{status: 400, reason: "bad-request", kind: "invalid_request_error", param: "x-user", final: true})
	v.open()
	s.epp.settled()
}

// The cap of a user does not block the other users of its tenant, and that of a tenant does. A user's queue has its own
// limit. A reload changes caps of both levels, but cannot change the keys.
func TestCapsOfUsersOnTheWire(t *testing.T) {
	t.Parallel()
	levels := func(tenant, user int) string {
		return fmt.Sprintf(`fairRequestQueue: { queueTTL: 10m, totalCapacity: 1000, flowCapacity: 200 }
flows: { levels: [ { key: ["header:x-org"], maxInFlight: %d }, { key: ["header:x-user"], maxInFlight: %d, maxQueued: 2 } ] }
requestQueueController: { watermarkPerBackend: 16, lowerBoundPerBackend: 16, upperBoundPerBackend: 16 }
`, tenant, user)
	}
	v, file := newValve(), newConfigFile(t, levels(3, 1))
	s := start(t, setup{models: []modelsim.Config{v.on(recorded(16))}, flags: []string{"--config-file=" + file.path}})
	for _, name := range []string{"u", "u", "u", "v", "v"} {
		s.begin(user("a", name))
	}
	s.epp.waitFor(3, "weir_queue_length") // one of each is in flight
	s.epp.waitFor(2, "weir_stock_level")
	wantRejection(t, s.send(user("a", "u")), rejection{status: 503, reason: "flow-full"})
	s.wantBypasses(user("a", "w")) // no request of its tenant blocks it
	s.begin(user("a", "x"))        // now its tenant is at its cap
	s.epp.waitFor(4, "weir_queue_length")
	s.wantBypasses(user("b", "u"))
	s.epp.waitFor(4, "weir_stock_level")

	file.write(levels(5, 2))
	s.epp.reloaded(1, 0, 1)
	s.epp.waitFor(6, "weir_stock_level") // two more of a's: of u, v and x
	s.epp.waitFor(2, "weir_queue_length")
	file.write(strings.ReplaceAll(levels(5, 2), "x-user", "x-device"))
	s.epp.reloaded(1, 1, 0)
	v.open()
	s.epp.settled()
}
