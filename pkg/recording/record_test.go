package recording_test

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/weir-epp/weir/pkg/decision"
	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/recording"
)

// The record of a decision that a replay comes to is the one that was made when the decision was: what was known of the flow,
// every candidate with its score and its constraints, and the end. Asking for records decides nothing.
func TestRecordsAreRecomputed(t *testing.T) {
	for seed := range uint64(6) {
		d := newDriver(t, seed, 8<<20, nil)
		quiet := newDriver(t, seed, 8<<20, nil)
		d.records = map[uint64]decision.Record{}
		for range 600 {
			d.step()
			quiet.step()
		}
		if !reflect.DeepEqual(d.story, quiet.story) {
			t.Fatalf("seed %d: records decide", seed)
		}
		var requests []recording.Request
		for number := uint64(1); number <= d.machine.Arrived(); number++ {
			requests = append(requests, recording.Request{Number: number})
		}
		explained, err := d.format.Explain(bytes.NewReader(d.bytes()), requests...)
		if err != nil {
			t.Fatal(err)
		}
		placed, outcomes := 0, map[string]int{}
		for i, e := range explained {
			want, decided := d.records[uint64(i+1)]
			got := e.Record
			got.ID = "" // the driver keeps none
			outcomes[got.Outcome]++
			switch {
			case !decided && got.Outcome == decision.Waiting:
				continue
			case want.Outcome == decision.InFlight && got.Outcome == dispatch.OutcomeDispatched.String():
				want.Outcome = got.Outcome // it is complete
			}
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("seed %d, request %d\ngot  %s\nwant %s\n%s", seed, i+1, got.JSON(), want.JSON(), e.Story)
			}
			if got.Placement != nil && got.Endpoint != "" {
				placed++
				if !strings.Contains(e.Story, strings.Join(got.Lines(), "\n")) {
					t.Fatalf("the story does not have the record:\n%s", e.Story)
				}
			}
		}
		if placed < 50 || len(outcomes) < 4 {
			t.Errorf("seed %d: %d placed, %v: the run is too tame", seed, placed, outcomes)
		}
	}
}

// A request that was refused before it arrived is explained, too, and an ID that comes again is said to.
func TestExplainRefusalsAndRepeatedIDs(t *testing.T) {
	d := newQuietDriver(t)
	refuse := func(id string, o dispatch.Outcome) {
		d.recorder.Refuse(d.now, &dispatch.Refusal{ID: id, Flow: "team-a", Model: "nobody's", Outcome: o, RetryAfter: d.machine.Refuse(d.now, o)})
		d.now = d.now.Add(time.Millisecond)
	}
	refuse("early", dispatch.OutcomeUnknownModel)
	first := d.arriveAs("a", 1, "again")
	d.arriveAs("a", 1, "again")
	d.arriveAs("a", 1, "once")
	refuse("again", dispatch.OutcomeBadRequest)
	d.complete(first)
	text := d.bytes()
	for name, want := range map[string]string{
		"early": "It ended as unknown-model after 0s in the queue.\nIt was refused before it came to the queue.\n",
		"again": "The recording has 2 more of this ID: 1 were refused before they arrived, and the others have the numbers 2, by which " +
			"--request explains them.\n",
		"2":    "Request 2 arrived",
		"once": "When the recording ends it still waits.\n",
	} {
		said, err := d.explain(text, name)
		if err != nil || !strings.Contains(said, want) {
			t.Errorf("%s: %v: it is not said that %q:\n%s", name, err, want, said)
		}
		if more := strings.Contains(said, "more of this ID"); more != (name == "again") {
			t.Errorf("%s: it is said that there are more: %v", name, more)
		}
	}
	if said, _ := d.explain(text, "early"); !strings.Contains(said, `flow "team-a", model "nobody's"`) {
		t.Error(said)
	}
}

// A list has every request once, with its wait and its end, and the refused ones; it can be of some flows, and of the last
// minutes; the slowest are those that waited longest.
func TestList(t *testing.T) {
	d := newQuietDriver(t)
	first := d.arriveAs("a", 1, "first")
	d.arriveAs("a", 1, "second")
	d.arriveAs("b", 1, "third")
	d.now = d.now.Add(10 * time.Second)
	d.complete(first) // the second one of a goes
	d.recorder.Refuse(d.now, &dispatch.Refusal{ID: "early", Flow: "b", Outcome: dispatch.OutcomeTooLarge})
	d.arriveAs("b", 1, "fourth")
	d.now = d.now.Add(time.Second)
	d.recorder.Advance(d.now)
	d.call(func() { d.machine.Advance(d.now) })
	list, err := d.format.List(bytes.NewReader(d.bytes()), nil)
	if err != nil {
		t.Fatal(err)
	}
	type short struct {
		id, outcome string
		waited      time.Duration
		endpoint    string
		service     time.Duration
	}
	shorts := func(of []recording.Listed) (all []short) {
		for _, r := range of {
			all = append(all, short{r.ID, r.Outcome, r.Waited.Round(time.Second), r.Endpoint, r.Service.Round(time.Second)})
		}
		return all
	}
	want := []short{
		{"first", "dispatched", 0, "10.0.0.1:80", 10 * time.Second},
		{"second", "in flight", 10 * time.Second, "10.0.0.1:80", 0},
		{"third", "waiting", 11 * time.Second, "", 0},
		{"early", "too-large", 0, "", 0},
		{"fourth", "waiting", time.Second, "", 0},
	}
	if got := shorts(list.Requests); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	if got := shorts(list.Slowest(2)); !reflect.DeepEqual(got, []short{want[2], want[1]}) {
		t.Errorf("the slowest: %v", got)
	}
	for _, between := range []struct {
		from, to time.Duration // before the end
		want     []short
	}{
		{5 * time.Second, 0, want[1:]},
		{500 * time.Millisecond, 0, []short{want[2], want[4]}},
		{time.Hour, 5 * time.Second, want[:3]}, // the third has waited all the time
		{time.Hour, time.Second, want},
		{1100 * time.Millisecond, 900 * time.Millisecond, want[1:]},
	} {
		if got := shorts(list.Between(list.To.Add(-between.from), list.To.Add(-between.to)).Requests); !reflect.DeepEqual(got, between.want) {
			t.Errorf("from %v to %v before the end:\ngot  %v\nwant %v", between.from, between.to, got, between.want)
		}
	}
	list, err = d.format.List(bytes.NewReader(d.bytes()), []string{"b"})
	if got := shorts(list.Requests); err != nil || !reflect.DeepEqual(got, want[2:]) {
		t.Errorf("of b: %v %v", got, err)
	}
}
