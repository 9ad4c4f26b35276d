package app

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"

	"github.com/weir-epp/weir/internal/expect"
	"github.com/weir-epp/weir/internal/status"
	"github.com/weir-epp/weir/pkg/decision"
	"github.com/weir-epp/weir/pkg/flowcontrol"
)

// ended counts requests of a flow that end with an outcome. It leaves the counts kept before as they are.
func (o *outcomes) ended(flow string, with flowcontrol.Outcome, n uint64) {
	o.flows = maps.Clone(o.flows)
	if o.flows == nil {
		o.flows = map[string]ofFlow{}
	}
	f := o.flows[flow]
	f.all += n
	for _, none := range flowcontrol.NoRoom {
		if with == none {
			f.noRoom += n
		}
	}
	o.flows[flow] = f
	o.by[with] += n
}

// Above a twentieth of the requests of the last five minutes Weir rejects too often, and no longer once these minutes
// are over.
func TestRejecting(t *testing.T) {
	begun := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var e endings
	var now outcomes
	end := func(o flowcontrol.Outcome, n uint64) { now.ended("only", o, n) }
	at := func(after time.Duration) *recent {
		now.at = begun.Add(after)
		return e.until(now)
	}
	if r := at(0); r.rejecting() != "" {
		t.Error("too often before the start")
	}
	e.keep(now)
	end(flowcontrol.OutcomeDispatched, 95)
	end(flowcontrol.OutcomeTTLExpired, 3)
	end(flowcontrol.OutcomeShed, 2)
	if r := at(time.Second); r.rejecting() != "" || r.n != 5 || r.all != 100 || r.window != time.Second {
		t.Errorf("a twentieth: %+v", r)
	}
	end(flowcontrol.OutcomeShed, 2)
	end(flowcontrol.OutcomeClientCancelled, 2) // the client's own
	if r := at(2 * time.Second); r.rejecting() == "" || r.n != 7 || r.all != 104 || r.main != flowcontrol.OutcomeShed || r.most != 4 {
		t.Errorf("more: %+v", r)
	}
	for after := endingsStep; after <= endingsWindow+endingsStep; after += endingsStep {
		if r := at(after); (r.rejecting() != "") != (after <= endingsWindow) {
			t.Errorf("after %v: %+v", after, r)
		}
		e.keep(now)
		if len(e.kept) > int(endingsWindow/endingsStep)+1 {
			t.Fatalf("%d are kept", len(e.kept))
		}
	}
	end(flowcontrol.OutcomeNoEndpoint, rejectingLeast-1)
	if r := at(endingsWindow + endingsStep + 1); r.rejecting() != "" {
		t.Errorf("two requests: %+v", r)
	}
	end(flowcontrol.OutcomeNoEndpoint, 1)
	if r := at(endingsWindow + endingsStep + 2); r.rejecting() == "" || r.share(r.n) != 100 {
		t.Errorf("three of three: %+v", r)
	}
}

// Rejections of half of the flows or fewer are these flows' own affair, as a tenant's that floods alone, unless requests find
// no endpoint.
func TestRejectingFewFlows(t *testing.T) {
	for _, test := range []struct {
		outcome         flowcontrol.Outcome
		rejected, flows int
		want            bool
	}{
		{flowcontrol.OutcomeFlowFull, 1, 1, true}, // the whole traffic is one flow
		{flowcontrol.OutcomeFlowFull, 1, 2, false},
		{flowcontrol.OutcomeQueueFull, 2, 3, true},
		{flowcontrol.OutcomeTTLExpired, 5, 10, false},
		{flowcontrol.OutcomeDisplaced, 6, 10, true},
		{flowcontrol.OutcomeNoEndpoint, 1, 10, true}, // a model without an engine
	} {
		var e endings
		var now outcomes
		now.ended("gone", test.outcome, 5) // before
		e.keep(now)
		for i := range test.flows {
			name := fmt.Sprint("flow-", i)
			now.ended(name, flowcontrol.OutcomeDispatched, 10)
			if i < test.rejected {
				now.ended(name, test.outcome, uint64(10*(i+1)))
			}
		}
		now.ended("", flowcontrol.OutcomeBadRequest, 3) // of no known flow
		r := e.until(now)
		if (r.rejecting() != "") != test.want || r.active != test.flows || len(r.flows) != test.rejected || !r.many(r.n) {
			t.Errorf("%d of %d flows with %v: %+v", test.rejected, test.flows, test.outcome, r)
		}
		if most := (status.Holder{Flow: fmt.Sprint("flow-", test.rejected-1), Held: int64(10 * test.rejected)}); r.flows[0] != most {
			t.Errorf("the first one is %+v, want %+v", r.flows[0], most)
		}
	}
}

// The reason names requests without an endpoint if only these are too many, beside one flow's many rejections.
func TestRejectingWithoutEndpoint(t *testing.T) {
	var e endings
	var now outcomes
	now.at = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	e.keep(now)
	for i := range 10 {
		now.ended(fmt.Sprint("flow-", i), flowcontrol.OutcomeDispatched, 6)
	}
	now.ended("flow-0", flowcontrol.OutcomeNoEndpoint, 8)
	now.ended("flow-1", flowcontrol.OutcomeFlowFull, 32)
	now.at = now.at.Add(time.Minute)
	if got, want := e.until(now).rejecting(), "8% of the requests of the last 1m0s were rejected with no-endpoint"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// A tenant that floods beyond its own limit is named by a note, and the pool is healthy; alone, it is the pool's overload.
func TestStatusOfANoisyFlow(t *testing.T) {
	o := testOptions()
	o.ConfigText = "requestQueueController: { lowerBoundPerBackend: 2, upperBoundPerBackend: 2 }\n" +
		"flows: { key: [\"header:x-user\"] }\nfairRequestQueue: { flowCapacity: 1 }"
	r := start(t, o)
	expect.True(t, "the first counts are kept", func() bool {
		r.pool.endings.mu.Lock()
		defer r.pool.endings.mu.Unlock()
		return len(r.pool.endings.kept) > 0
	})
	for range 2 {
		granted(t, r.request(t.Context(), [2]string{"x-user", "noisy"}))
	}
	for range 1 + rejectingLeast { // the first one waits
		r.request(t.Context(), [2]string{"x-user", "noisy"})
	}
	expect.True(t, "they are rejected", func() bool { _, n := r.pool.controller.Ended(); return n == rejectingLeast })
	if d := r.document(""); len(d.Notes) != 0 || len(d.Reasons) != 1 || d.Reasons[0].ID != "rejecting" {
		t.Errorf("alone: %+v, notes %+v", d.Reasons, d.Notes)
	}
	quiet := r.request(t.Context(), [2]string{"x-user", "quiet"})
	_ = quiet.CloseSend() // it ends
	expect.True(t, "the quiet one's request has ended", func() bool { n, _ := r.pool.controller.Ended(); return n == rejectingLeast+1 })
	d := r.document("")
	if len(d.Notes) != 1 || !d.Healthy {
		t.Fatalf("beside another one: %+v, notes %+v", d.Reasons, d.Notes)
	}
	if got := d.Notes[0].Line(); !strings.HasPrefix(got, "flows-rejected: 75% of the") || !strings.HasSuffix(got, "were rejected, all of 1 of 2 flows: noisy 3") {
		t.Error(got)
	}
}

// A file of decision records that cannot be written, as on a full disk, is a note with the reason.
func TestStatusOfLostRecords(t *testing.T) {
	o := testOptions()
	o.ConfigText = "decisions: { sample: 1, sink: file, file: /dev/full }"
	r := start(t, o)
	r.pool.records.Put(&decision.Record{})
	expect.True(t, "the record is lost", func() bool { return r.pool.records.Failure() != nil })
	if d := r.document(""); len(d.Notes) != 1 || !strings.HasPrefix(d.Notes[0].Line(), "records-lost: decisions.file cannot be written: ") || !d.Healthy {
		t.Errorf("%+v, notes %+v", d.Reasons, d.Notes)
	}
}

// Requests that wait on idle engines, whose slots are all reserved for a higher tier, are a note that names both tiers.
func TestStatusOfAReservation(t *testing.T) {
	o := testOptions()
	o.Profile = ""
	o.ConfigText = "profile: smg-priority\nrequestQueueController: { slotsPerBackend: 2 }\n" +
		"tiers: [ { name: system, reservedFloor: 2 } ]\ncriticality: { maxClass: system }"
	r := start(t, o)
	class := func(name string) extprocv3.ExternalProcessor_ProcessClient {
		return r.request(t.Context(), [2]string{"x-smg-priority", name})
	}
	if d := r.document(""); len(d.Notes) != 0 {
		t.Errorf("nobody waits: %+v", d.Notes)
	}
	class("bulk")
	const want = "reserved: requests wait, 1 of bulk, since the free stock is reserved for system (2 of 2 unused)"
	expect.True(t, "it waits", func() bool { return r.pool.controller.State().Queued == 1 })
	if d := r.document(""); len(d.Notes) != 1 || d.Notes[0].Line() != want || !d.Healthy {
		t.Errorf("%+v, notes %+v", d.Reasons, d.Notes)
	}
	if _, text := r.debug("/statusz"); !strings.Contains(text, "requests wait, 1 of bulk") {
		t.Errorf("statusz:\n%s", text)
	}
	for range 2 {
		granted(t, class("system"))
	}
	if d := r.document(""); len(d.Notes) != 0 {
		t.Errorf("the stock is full: %+v", d.Notes)
	}
}

// An engine that answers each request with a 4xx, as one with another model does, is a reason against the health until it
// serves one.
func TestStatusOfAnEngineThatRefuses(t *testing.T) {
	o := testOptions()
	o.ConfigText = "requestQueueController: { circuits: true }"
	r := start(t, o)
	answered := func(code string) {
		t.Helper()
		before, _ := r.pool.controller.Ended()
		stream := r.request(t.Context())
		granted(t, stream)
		if err := stream.Send(&extprocv3.ProcessingRequest{Request: &extprocv3.ProcessingRequest_ResponseHeaders{
			ResponseHeaders: &extprocv3.HttpHeaders{
				Headers:     &corev3.HeaderMap{Headers: []*corev3.HeaderValue{{Key: ":status", RawValue: []byte(code)}}},
				EndOfStream: true,
			},
		}}); err != nil {
			t.Fatal(err)
		}
		_ = stream.CloseSend()
		expect.True(t, "it has ended", func() bool { n, _ := r.pool.controller.Ended(); return n == before+1 })
	}
	for range refusingLeast - 1 {
		answered("404")
	}
	if d := r.document(""); len(d.Notes) > 0 || d.Engines[0].Failures != 0 {
		t.Errorf("few: %+v", d.Notes)
	}
	time.Sleep(ratesLeast)
	answered("403")
	d := r.document("")
	if !d.Healthy || len(d.Notes) != 1 || d.Notes[0].ID != "engines-refuse" || !strings.HasSuffix(d.Notes[0].Text, "4xx at 192.0.2.1:8000 (10)") {
		t.Errorf("%+v, %+v", d.Reasons, d.Notes)
	}
	if e := d.Engines[0]; e.Refused <= 0 || e.Refused != e.Answers || e.State() != "ready" {
		t.Errorf("%+v", e)
	}
	answered("200")
	if d := r.document(""); len(d.Notes) > 0 {
		t.Errorf("after an answer: %+v", d.Notes)
	}
}
