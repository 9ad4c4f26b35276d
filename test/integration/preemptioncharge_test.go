package integration

import (
	"fmt"
	"strings"
	"testing"
)

// A prompt of 2,000 tokens is preempted in flight, and charged nothing: its tenant's next requests go by turns with those
// of the other tenant, and do not wait until that has had as much.
func TestPreemptedIsNotCharged(t *testing.T) {
	t.Parallel()
	v := newValve()
	config := strings.Replace(smgOneSlot, `["header:x-tenant"] }`, `["header:x-tenant"], discipline: vtc }`, 1) +
		"cost: tokens\nrequestBody: always\n"
	s := start(t, setup{envoys: []string{"usage"}, models: v.one(), config: config})
	bulk := func(tenant string, in int) *pending {
		a := as("bulk", tenant)
		a.path, a.body = "/v1/completions", completion(in, 1)
		return s.begin(a)
	}
	for _, tenant := range []string{"a", "b"} { // both are known
		first := bulk(tenant, 10)
		v.pass(1)
		wantServed(t, "the first of "+tenant, first.wait())
	}
	victim := bulk("a", 2000)
	s.running(1)
	var of [2][]*pending
	for range 4 {
		of[1] = append(of[1], bulk("b", 10))
		of[0] = append(of[0], bulk("a", 10))
	}
	s.epp.waitFor(8, "weir_tier_queue_length", "tier", "bulk")
	urgent := s.begin(as("interactive", "vip"))
	wantPreempted(t, "the victim", "/v1/completions", victim.wait())
	eventually(t, "the preemptor is at the model server, and the victim gone", func() error {
		if stats := s.models[0].Stats(); stats.Started != 4 || stats.InFlight != 1 {
			return fmt.Errorf("%+v", stats)
		}
		return nil
	})
	v.pass(1)
	wantServed(t, "the preemptor", urgent.wait())
	v.pass(4) // the next one is at the model server then
	s.running(1)
	done := 0
	for _, p := range of[0] {
		select {
		case <-p.done:
			done++
		default:
		}
	}
	if done == 0 {
		t.Error("4 requests were served, and none of the tenant's whose request was preempted")
	}
	v.pass(4)
	for _, p := range append(of[0], of[1]...) {
		wantServed(t, "a waiter", p.wait())
	}
}
