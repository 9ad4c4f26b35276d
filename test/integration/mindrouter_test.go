package integration

import (
	"fmt"
	"slices"
	"strconv"
	"testing"

	"github.com/weir-epp/weir/internal/expect"
)

// mindRouter is the profile for users by a header, whose requests cost 100 tokens each, before one slot.
const mindRouter = "profile: mindrouter-fairshare\n" + single + `flows: { key: ["header:x-tenant"], weights: { faculty: 3, staff: 2 } }
trustedHeaders: { cost: x-cost }
`

// costs is a request of a user with a cost in tokens.
func costs(user string, tokens int) ask {
	return ask{header: []string{"x-tenant", user, "x-cost", strconv.Itoa(tokens)}}
}

func hundred(user string) ask { return costs(user, 100) }

// "Faculty 50 %, staff 33 %, student 17 %": of 1,200 grants of 100 tokens, with all three backlogged, 600, 400 and 200
// within 2 %. (TestFairShareThreeToTwoToOne in pkg/fairqueue has all 6,000.)
func TestMindRouterThreeToTwoToOne(t *testing.T) {
	t.Parallel()
	const grants = 1200
	served := map[string]int{}
	for _, user := range crowdOf(t, mindRouter, hundred, grants, "student", "staff", "faculty") {
		served[user]++
	}
	for user, want := range map[string]int{"faculty": 600, "staff": 400, "student": 200} {
		if got := served[user]; got < want-12 || got > want+12 {
			t.Errorf("%s was served %d of %d, want %d ± 12", user, got, grants, want)
		}
	}
}

// "Heavy user, light user arrives": the user with the least service goes next, although 20 requests of the heavy user
// came before, and whatever the light user's request costs.
func TestMindRouterLightUserIsNext(t *testing.T) {
	t.Parallel()
	v := newValve()
	s := start(t, setup{models: v.one(), config: mindRouter})
	var waiting []*pending
	for range 21 {
		waiting = append(waiting, s.begin(costs("heavy", 100)))
	}
	s.epp.waitFor(20, "weir_queue_length")
	for i, tokens := range []int{10, 100, 5000} {
		waiting = append(waiting, s.begin(costs(fmt.Sprint("light-", i), tokens)))
		s.epp.waitFor(float64(21-i), "weir_queue_length")
		v.pass(1)
		s.epp.waitFor(float64(20-i), "weir_queue_length")
		expect.True(t, "the next one is granted", func() bool { return len(s.models[0].Records()) == 2*i+2 })
		if got := tenants(s.models[0]); got[len(got)-1] != fmt.Sprint("light-", i) {
			t.Errorf("with %d tokens: %v were granted, want the light user last", tokens, got)
		}
		v.pass(1) // the light one's answer; then one of the heavy user's goes
		expect.True(t, "the heavy user goes on", func() bool { return len(s.models[0].Records()) == 2*i+3 })
	}
	v.open()
	for _, p := range waiting {
		wantServed(t, "a request", p.wait())
	}
	if n := len(slices.DeleteFunc(tenants(s.models[0]), func(user string) bool { return user != "heavy" })); n != 21 {
		t.Errorf("%d of the heavy user's 21 requests were served", n)
	}
	s.epp.settled()
}

// A request for a model that no backend has is refused at once. It does not wait as if for capacity, while others do.
func TestDefect8PermanentMismatch(t *testing.T) {
	t.Parallel()
	v := newValve()
	s := start(t, setup{models: v.one(), config: mindRouter, file: true})
	s.listEndpoints(fmt.Sprintf("{ address: %q, models: [tiny] }", s.models[0].Address()))
	running := s.begin(from("other"))
	s.epp.waitFor(1, "weir_stock_level")
	waits := s.begin(from("other"))
	s.epp.waitFor(1, "weir_queue_length")
	wantRejection(t, s.send(ask{header: []string{"x-tenant", "mistaken"}, body: chat("no-such-model", false)}),
		rejection{status: 404, reason: "unknown-model", kind: "invalid_request_error", param: "model", final: true})
	v.open()
	wantServed(t, "the one that ran", running.wait())
	wantServed(t, "the one that waited", waits.wait())
	s.epp.settled()
}
