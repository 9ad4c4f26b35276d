package app

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/config"
	"github.com/weir-epp/weir/internal/expect"
	"github.com/weir-epp/weir/pkg/decision"
	"github.com/weir-epp/weir/pkg/recording"
)

// records returns the decision records in a file.
func recordsIn(t *testing.T, file string) (all []decision.Record) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		var r decision.Record
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

// weir explain recomputes the sink's record of a request from the recording, in every profile: for requests that go at
// once, that wait, and that are refused, in the queue and before it.
func TestRecordsOfSinkAndRecordingAreTheSame(t *testing.T) {
	format, err := Recordings()
	if err != nil {
		t.Fatal(err)
	}
	for _, profile := range config.Profiles() {
		o := testOptions()
		o.Profile = profile
		o.Endpoints = []string{"192.0.2.1:8000", "192.0.2.2:8000"}
		file := filepath.Join(t.TempDir(), "decisions.json")
		before := o.Override
		o.Override = func(d *config.Document) {
			before(d)
			d.Flows.Key = []string{"header:x-tenant", "model"}
			d.RequestQueueController.EnqueueAll = true
			one := config.Slots(1)
			d.RequestQueueController.SlotsPerBackend = &one
			d.FairRequestQueue.TotalCapacity, d.FairRequestQueue.FlowCapacity = 3, 1
			d.Decisions.Sample, d.Decisions.Sink, d.Decisions.File = config.One, "file", file
		}
		r := start(t, o)
		first := r.request(t.Context(), [2]string{"x-tenant", "a"}, [2]string{"x-request-id", "at once"})
		granted(t, first)
		granted(t, r.request(t.Context(), [2]string{"x-tenant", "b"}, [2]string{"x-request-id", "also"}))
		waits := r.request(t.Context(), [2]string{"x-tenant", "a"}, [2]string{"x-request-id", "waits"})
		expect.True(t, "a waiter", func() bool { return r.pool.controller.State().Queued == 1 })
		full := r.request(t.Context(), [2]string{"x-tenant", "a"}, [2]string{"x-request-id", "too many"})
		if _, err := full.Recv(); err != nil {
			t.Fatal(err)
		}
		bad := r.request(t.Context(), [2]string{"x-tenant", "a"}, [2]string{"x-tenant", "b"}, [2]string{"x-request-id", "two tenants"})
		if _, err := bad.Recv(); err != nil {
			t.Fatal(err)
		}
		if err := first.CloseSend(); err != nil {
			t.Fatal(err)
		}
		granted(t, waits)
		if err := waits.CloseSend(); err != nil {
			t.Fatal(err)
		}
		expect.True(t, "the records", func() bool { return len(recordsIn(t, file)) == 4 })
		_, dump := r.debug("/debug/recording")
		want := map[string]string{"at once": "dispatched", "waits": "dispatched", "too many": "flow-full", "two tenants": "bad-request"}
		for _, got := range recordsIn(t, file) {
			explained, err := format.Explain(strings.NewReader(dump), recording.Request{ID: got.ID})
			if err != nil {
				t.Fatalf("%s: %v", profile, err)
			}
			again := explained[0].Record
			if d := again.Arrived.Sub(got.Arrived).Abs(); d > time.Millisecond && got.Number > 0 {
				t.Errorf("%s, %s: the times differ by %v", profile, got.ID, d)
			}
			again.Arrived = got.Arrived // the recording adds up differences, and a refused request has two clocks
			if !bytes.Equal(got.JSON(), again.JSON()) {
				t.Errorf("%s, %s:\nin the sink   %s\nin the replay %s", profile, got.ID, got.JSON(), again.JSON())
			}
			if got.Outcome != want[got.ID] {
				t.Errorf("%s, %s: %s", profile, got.ID, got.Outcome)
			}
			delete(want, got.ID)
		}
		if len(want) > 0 {
			t.Errorf("%s: without a record: %v", profile, want)
		}
	}
}
