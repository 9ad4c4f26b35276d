package recording_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/recording"
)

func (d *driver) history() *recording.History {
	d.t.Helper()
	h, err := d.format.History(bytes.NewReader(d.bytes()))
	if err != nil {
		d.t.Fatal(err)
	}
	return h
}

// A history has each request with its times, the grants, the refusals, and the changes of the configuration. Requests that
// were there when it begins are marked, with what they had waited.
func TestHistory(t *testing.T) {
	d := newQuietDriver(t)
	first := d.arriveAs("a", 0, "first")
	d.arriveAs("a", 0, "second")
	d.arriveAs("b", 0, "third")
	waits := d.now.Add(-time.Millisecond) // since the third has arrived
	d.recorder.Seal()
	if err := d.recorder.DropAll(); err != nil {
		t.Fatal(err)
	}
	d.now = d.now.Add(time.Second)
	begin := d.now
	d.complete(first)
	r := dispatch.Refusal{ID: "early", Flow: "a", Outcome: dispatch.OutcomeTooLarge}
	r.RetryAfter = d.machine.Refuse(d.now, r.Outcome)
	d.recorder.Refuse(d.now, &r)
	d.arriveAs("c", 0, "fourth")
	d.config.Queue.Weights = map[string]fairqueue.Weight{"c": 3_000_000}
	d.recorder.Configure(d.now, d.config)
	d.call(func() {
		if err := d.machine.Configure(d.now, d.config); err != nil {
			t.Error(err)
		}
	})
	d.now = d.now.Add(time.Second)
	d.completeSome()

	h := d.history()
	if h.Hidden || h.Grants != 2 || h.Refused != 1 || len(h.Visits) != 4 || !h.From.Equal(begin) {
		t.Fatalf("%+v", h)
	}
	if len(h.Configs) != 1 || h.Configs[0].Config.Queue.Weights["c"] != 3_000_000 || h.Config.Queue.Weights["c"] != 0 {
		t.Errorf("changes of the configuration: %+v", h.Configs)
	}
	for i, want := range []struct {
		flow             string
		present, running bool
		waited           time.Duration
		granted, ended   bool
	}{
		{"a", true, true, 0, true, true},
		{"a", true, false, begin.Sub(waits) + time.Millisecond, true, true},
		{"b", true, false, begin.Sub(waits), true, false},
		{"c", false, false, 0, false, false},
	} {
		v := h.Visits[i]
		if v.Arrival.Flow != want.flow || v.Present != want.present || v.Running != want.running || v.Waited != want.waited ||
			v.Dispatched.IsZero() == want.granted || v.Ended.IsZero() == want.ended {
			t.Errorf("request %d: %+v", i, v)
		}
	}
}

// A history of hidden keys says so.
func TestHistoryOfHiddenKeys(t *testing.T) {
	d := newQuietDriver(t)
	hide := func(key string) string { return "hidden-" + key }
	d.record(1<<20, hide)
	d.arriveAs("a", 0, "first")
	h := d.history()
	if !h.Hidden || len(h.Visits) != 1 || h.Visits[0].Arrival.Flow != "hidden-a" {
		t.Errorf("%+v", h)
	}
	cfg := dispatch.Config{Queue: fairqueue.Config{Weights: map[string]fairqueue.Weight{"a": 7}}}
	if got := recording.HiddenConfig(cfg, hide); got.Queue.Weights["hidden-a"] != 7 || cfg.Queue.Weights["a"] != 7 {
		t.Errorf("%v of %v", got.Queue.Weights, cfg.Queue.Weights)
	}
}
