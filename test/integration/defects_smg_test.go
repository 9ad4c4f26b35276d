package integration

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weir-epp/weir/internal/expect"
	"github.com/weir-epp/weir/internal/modelsim"
)

// Defects of SMG's priority scheduler, tested with its own profile on the wire. docs/smg.md lists all of them, also
// those tested on the controller alone. The number is the row there.

// smgSlots returns the profile for one model server with the given slots. x-tenant names the tenant.
func smgSlots(slots int, more string) string {
	return fmt.Sprintf(`
profile: smg-priority
requestQueueController: { slotsPerBackend: %d }
flows: { key: ["header:x-tenant", model] }
%s`, slots, more)
}

// unreserved returns the classes for a pool too small for reservations, with additions for bulk.
func unreserved(bulk string) string {
	return "tiers: [ { name: system, reservedFloor: 0, canPreempt: false }, { name: interactive, reservedFloor: 0, reservedPerSlot: 0 }, " +
		"{ name: default, reservedPerSlot: 0 }, { name: bulk, " + bulk + " } ]\n"
}

const vipMayAll = "tenantPolicies: { vip: { maxClass: system } }\n"

// ofClass returns a request of an SMG class.
func ofClass(class, tenant string) ask {
	return ask{header: []string{"x-tenant", tenant, "x-smg-priority", class}}
}

// smg 9.4: SMG holds the profile's reservations for system and interactive (32 and 128 slots) although every tenant is
// clamped to default, so a small pool serves no request. Weir does not hold them, and logs it at start if the file
// names one.
func TestDefectReservationsForNobody(t *testing.T) {
	t.Parallel()
	v := newValve()
	s := start(t, setup{models: []modelsim.Config{v.on(recorded(4))}, config: smgSlots(4,
		"tiers: [ { name: interactive, reservedFloor: 129 }, { name: default, reservedPerSlot: 0 } ]\n")})
	for i := range 4 {
		s.begin(ofClass("bulk", "anybody"))
		s.epp.waitFor(float64(i+1), "weir_stock_level")
	}
	s.fill(1, ofClass("system", "anybody")) // clamped: it waits as default, and preempts nobody
	s.epp.waitFor(1, "weir_tier_queue_length", "tier", "default")
	expect.True(t, "the log names the reservations", func() bool {
		for line := range strings.Lines(s.epp.Log.String()) {
			if strings.Contains(line, "interactive") && strings.Contains(line, "reserv") {
				return true
			}
		}
		return false
	})
	v.open()
	s.epp.settled()
}

// smg 9.6 and 9.10: SMG notices a waiting client's disconnect only at its timeout. Until then the request holds its
// place, and others get a false 429. In Weir the place is free at once.
func TestDefectDisconnectIsSeenAtTheTimeout(t *testing.T) {
	t.Parallel()
	v := newValve()
	s := start(t, setup{models: v.one(), config: smgSlots(1, unreserved("queueSize: 1"))})
	s.begin(ofClass("bulk", "a"))
	s.epp.waitFor(1, "weir_stock_level")
	leaver := s.fill(1, ofClass("bulk", "a"))[0]
	if got := s.send(ofClass("bulk", "b")); got.status != 429 || got.reason() != "queue-full" {
		t.Fatalf("beyond the queue: got %d %q %v, want 429 queue-full", got.status, got.reason(), got.err)
	}
	leaver.cancel()
	s.epp.waitFor(0, "weir_tier_queue_length", "tier", "bulk") // the timeout is 300 s
	next := s.fill(1, ofClass("bulk", "b"))[0]
	v.open()
	wantServed(t, "who came after", next.wait())
	s.epp.settled()
	if got := s.epp.outcomes(); got["client-cancelled"] != 1 || got["queue-full"] != 1 || got["dispatched"] != 2 {
		t.Errorf("outcomes are %v, want 1 client-cancelled, 1 queue-full, 2 dispatched", got)
	}
}

// smg 9.7: with all backends unready, SMG's capacity becomes a configured fallback. In Weir it is 0: requests wait, and
// go when a backend comes, the highest class first.
func TestDefectNoBackendIsSomeCapacity(t *testing.T) {
	t.Parallel()
	s := start(t, setup{
		models: []modelsim.Config{recorded(1)}, file: true,
		config: smgSlots(1, vipMayAll+unreserved("")),
	})
	s.listEndpoints()
	s.epp.waitFor(0, "weir_stock_capacity")
	low := s.fill(1, ofClass("bulk", "low"))[0]
	high := s.fill(1, ofClass("system", "vip"))[0]
	s.listEndpoints(s.listed(1)...)
	wantServed(t, "system", high.wait())
	wantServed(t, "bulk", low.wait())
	s.epp.settled()
	if got := tenants(s.models[0]); len(got) != 2 || got[0] != "vip" {
		t.Errorf("served %v, want vip first", got)
	}
}

// smg 9.9: SMG reads the configuration once, and one typo in it switches the scheduler off. Weir applies a change at
// run time, and an invalid one changes nothing: classes, queue sizes and order stay.
func TestDefectTypoSwitchesSchedulingOff(t *testing.T) {
	t.Parallel()
	v := newValve()
	text := func(bulk string) string { return smgSlots(1, vipMayAll+unreserved(bulk)) }
	file := newConfigFile(t, text("queueSize: 1"))
	s := start(t, setup{models: v.one(), flags: []string{"--config-file=" + file.path}})
	s.begin(ofClass("bulk", "plug"))
	s.epp.waitFor(1, "weir_stock_level")
	s.fill(1, ofClass("bulk", "low"))

	file.write(text("queueSise: 2"))
	s.epp.reloaded(0, 1, 0)
	if got := s.send(ofClass("bulk", "low")); got.status != 429 || got.reason() != "queue-full" {
		t.Errorf("with the typing error: got %d %q %v, want 429 queue-full", got.status, got.reason(), got.err)
	}
	file.write(text("queueSize: 2"))
	s.epp.reloaded(1, 1, 1)
	s.fill(1, ofClass("bulk", "low"))
	s.fill(1, ofClass("system", "vip"))
	v.open()
	s.epp.settled()
	if got := strings.Join(tenants(s.models[0]), " "); got != "plug vip low low" {
		t.Errorf("served %s, want plug vip low low", got)
	}
}
