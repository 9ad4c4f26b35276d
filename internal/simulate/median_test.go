package simulate

import (
	"encoding/json"
	"testing"
)

// The median of several runs has the median of each figure. That of one run is the run.
func TestMedianOfRuns(t *testing.T) {
	run := func(answered int, hits, ttft float64, rejected map[string]int) *Report {
		f := Figures{Requests: 10, Answered: answered, HitPercent: hits, TTFT: Times{Mean: ttft, P99: 2 * ttft}, Rejected: rejected}
		return &Report{Name: "x", Seconds: ttft, All: f, Flows: []Flow{{"a", f}}}
	}
	m := Median([]*Report{
		run(9, 70, 3, map[string]int{"queue-full": 1}), run(10, 50, 1, nil), run(7, 60, 9, map[string]int{"queue-full": 2, "ttl": 1}), run(8, 90, 2, nil),
	})
	for _, f := range []Figures{m.All, m.Flows[0].Figures} {
		if f.Requests != 10 || f.Answered != 8 || f.HitPercent != 60 || f.TTFT.Mean != 2 || f.TTFT.P99 != 4 {
			t.Errorf("%+v", f)
		}
		if len(f.Rejected) != 0 { // 0, 0, 1, 2
			t.Errorf("rejected %v", f.Rejected)
		}
	}
	if m.Runs != 4 || m.Seconds != 2 || m.Name != "x" {
		t.Errorf("%+v", m)
	}
	one := simulated(t, "groups", 7, false, "small")[0]
	m = Median([]*Report{one})
	m.Runs = 0
	want, _ := json.Marshal(one)
	if got, _ := json.Marshal(m); string(got) != string(want) {
		t.Errorf("of one run:\n%s\nwant\n%s", got, want)
	}
}
