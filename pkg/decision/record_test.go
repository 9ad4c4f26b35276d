package decision

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/scheduling"
)

func someRecord() Record {
	return Record{
		ID: "the one", Model: "m", Outcome: "dispatched", Endpoint: "10.0.0.2:80",
		Facts: dispatch.Facts{
			Number: 7, Arrived: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Flow: "team-a", Tier: "default", Cost: 12, Waited: 1.5,
			Weight: 2, Role: "student", Waiting: 3, InFlight: 1, Class: "c", ClassDeficit: -4, Quantum: 9,
			FairShare: &dispatch.FairShare{Deficit: 20, Recent: 300, BurstCredits: 5, Factor: 0.8},
			Quota:     &dispatch.QuotaFacts{Limit: 1000, Remaining: 400, Reset: 360},
		},
		Placement: &scheduling.Decision{
			Policy: scheduling.PolicyCost, Chosen: "10.0.0.2:80",
			Candidates: []scheduling.Candidate{
				{ID: 0, Address: "10.0.0.1:80", Stock: 2, Failed: []scheduling.Failure{{Filter: "ready", Reason: "not ready"}}},
				{ID: 1, Address: "10.0.0.2:80", Stock: 1, Total: 5},
			},
		},
	}
}

// People read all that the record has.
func TestText(t *testing.T) {
	r := someRecord()
	const want = `Request the one arrived at 2026-01-02T03:04:05Z: flow "team-a", tier default, model "m", cost 12.
It ended as dispatched after 1.5s in the queue.
Its flow had a weight of 2 by its role student, 3 of its requests waited, and 1 were in flight.
Its class "c" had a deficit of -4, and earns 9 a round.
By fairshare the flow was owed 20, had used 300 recently and had burst credits of 5; its priority was lowered by the factor 0.8.
Of the quota of its tenant, 1000 tokens, 400 were left; all of them are in 6m0s.
It went to 10.0.0.2:80. The endpoints of its pool, before it was counted:
  10.0.0.1:80: 2 in flight, ruled out: not ready
  10.0.0.2:80: 1 in flight, score 5 (chosen)
Among the endpoints that it may use the highest score goes first, and among equals the next in turn.
`
	if got := r.Text(); got != want {
		t.Errorf("got\n%s", got)
	}
}

// A rejected request has its limit with those that hold most of it; its client is told the limit's name alone.
func TestLimits(t *testing.T) {
	r := Record{Outcome: "queue-full", RetryAfter: 2.25, Facts: dispatch.Facts{Flow: "b", Limit: &dispatch.Limit{
		Name: "total-capacity", Value: 100, Holders: []dispatch.Holder{{Flow: "noisy", Held: 90}, {Flow: "b", Held: 6}, {Flow: "c", Held: 4}},
	}}}
	for _, want := range []string{
		"It ended as queue-full after 0s in the queue. Its client was told to come back in 2.25s.\n",
		`It met the limit total-capacity of 100: flow "noisy" holds 90, flow "b" holds 6, flow "c" holds 4.` + "\n",
	} {
		if got := r.Text(); !strings.Contains(got, want) {
			t.Errorf("it is not said that %q:\n%s", want, got)
		}
	}
	c := r.ForClient()
	if text := string(c.JSON()); strings.Contains(text, "noisy") || strings.Contains(text, "90") || !strings.Contains(text, `"limit":{"name":"total-capacity"`) {
		t.Errorf("the client gets %s", text)
	}
	if r.Limit.Value != 100 || len(r.Limit.Holders) != 3 {
		t.Error("the record itself has changed")
	}
}

// JSON loses nothing.
func TestJSON(t *testing.T) {
	r := someRecord()
	var back Record
	if err := json.Unmarshal(r.JSON(), &back); err != nil || !reflect.DeepEqual(back, r) {
		t.Errorf("%v\n%+v\n%+v", err, back, r)
	}
}

// A header has room for so many bytes of ASCII: it loses candidates, the chosen one last.
func TestShort(t *testing.T) {
	r := someRecord()
	r.ID = "é\uffff\U0001F600\n"
	for id := range scheduling.EndpointID(500) {
		r.Placement.Candidates = append(r.Placement.Candidates, scheduling.Candidate{ID: 2 + id, Address: fmt.Sprintf("10.0.1.%d:80", id)})
	}
	for _, most := range []int{900, 1200, 4000, 100_000} {
		text := r.Short(most)
		var back Record
		if err := json.Unmarshal([]byte(text), &back); err != nil || text == "" || len(text) > most {
			t.Fatalf("%d bytes of %d: %v %s", len(text), most, err, text)
		}
		if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' }) {
			t.Errorf("not fit for a header: %q", text)
		}
		p := back.Placement
		if back.ID != r.ID || len(p.Candidates)+p.More != 502 || len(p.Candidates) > 0 && p.Candidates[0].Address != "10.0.0.2:80" {
			t.Errorf("%d bytes: %q, %d candidates, %d more", most, back.ID, len(p.Candidates), p.More)
		}
		if most == 4000 && len(p.Candidates) < 20 {
			t.Errorf("only %d candidates in %d bytes", len(p.Candidates), len(text))
		}
	}
	if got := r.Short(10); got != "" {
		t.Errorf("%q", got)
	}
	if len(r.Placement.Candidates) != 502 {
		t.Error("the record itself has changed")
	}
}

// Names that a client has chosen control no terminal.
func TestTextIsPrintable(t *testing.T) {
	if got := Printable("a\x1b[2J\u202eé"); got != `a\x1b[2J\u202eé` {
		t.Errorf("%q", got)
	}
	r := Record{ID: "\x1b[2J", Model: "\n", Outcome: "dispatched", Facts: dispatch.Facts{Flow: "\x1b]0;"}}
	if got := r.Text(); strings.ContainsAny(strings.ReplaceAll(got, "\n", ""), "\x1b\n") || strings.Count(got, "\n") != 2 {
		t.Errorf("%q", got)
	}
}

// A sample has its share of requests, the same ones whenever they are asked for, and those of a smaller share are in it.
func TestSample(t *testing.T) {
	const requests = 100_000
	count := map[int64]int{}
	for i := range requests {
		id := fmt.Sprintf("%08x-1234-4abc-8def-%012x", i, i*7919)
		in := false
		for _, share := range []int64{0, 10_000, 500_000, SampleOne} {
			has := SampleOf(share).Has(id)
			if has != SampleOf(share).Has(id) || in && !has {
				t.Fatalf("%s: share %d", id, share)
			}
			if in = has; has {
				count[share]++
			}
		}
	}
	if count[0] != 0 || count[SampleOne] != requests || count[10_000] < 900 || count[10_000] > 1100 || count[500_000] < 49_000 || count[500_000] > 51_000 {
		t.Errorf("%v", count)
	}
	n := 0
	for i := range uint64(requests) {
		if SampleOf(10_000).HasNumber(i) {
			n++
		}
	}
	if n < 900 || n > 1100 || !SampleOf(0).None() || SampleOf(1).None() || SampleOf(SampleOne).None() {
		t.Errorf("%d by number", n)
	}
}
