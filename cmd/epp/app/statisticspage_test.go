package app

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/weir-epp/weir/internal/expect"
	"github.com/weir-epp/weir/pkg/dispatch"
)

// /debug/statistics has MindRouter's queue statistics: the waiters with their models and times, and each user's usage
// and share.
func TestStatisticsPage(t *testing.T) {
	o := testOptions()
	o.Profile = "mindrouter-fairshare"
	o.ConfigText = "requestQueueController: { watermarkPerBackend: 1, lowerBoundPerBackend: 1, upperBoundPerBackend: 1 }\n" +
		"flows: { key: [\"header:x-user\"], weights: { ann: 3 } }\ntrustedHeaders: { cost: x-cost }"
	r := start(t, o)
	granted(t, r.request(t.Context(), [2]string{"x-user", "ann"}, [2]string{"x-cost", "100"}))
	r.request(t.Context(), [2]string{"x-user", "ann"}, [2]string{"x-cost", "100"})
	r.request(t.Context(), [2]string{"x-user", "bob"}, [2]string{"x-cost", "40"})
	expect.True(t, "two wait", func() bool { return r.pool.controller.State().Queued == 2 })
	status, text := r.debug("/debug/statistics?limit=5")
	var page dispatch.Statistics
	if err := json.Unmarshal([]byte(text), &page); err != nil || status != 200 || page.FairShare == nil {
		t.Fatalf("%d %v\n%s", status, err, text)
	}
	if wait := page.Queue.AverageWait; wait <= 0 || wait > 600 {
		t.Errorf("they have waited %v s", wait)
	}
	page.Queue.AverageWait = 0
	want := dispatch.QueueStatistics{Total: 2, ByUser: map[string]int{"ann": 1, "bob": 1}, ByModel: map[string]int{"chat": 2}}
	if !reflect.DeepEqual(page.Queue, want) {
		t.Errorf("queue: got %+v, want %+v", page.Queue, want)
	}
	s := page.FairShare
	if s.TotalUsers != 2 || s.Recent != 100 || s.Window != 300 || len(s.UserStats) != 2 {
		t.Fatalf("fair_share: %s", text)
	}
	for i, want := range []dispatch.UserStats{
		{User: "ann", Tier: "default", Weight: 3, Recent: 100, Factor: 0.1, Active: 1, Waiting: 1},
		{User: "bob", Tier: "default", Weight: 1, Factor: 1, Waiting: 1},
	} {
		got := s.UserStats[i]
		got.Deficit, got.BurstCredits = 0, 0
		if got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
	if sum := s.UserStats[0].Deficit + s.UserStats[1].Deficit; sum < -1 || sum > 1 {
		t.Errorf("the deficits add up to %d", sum)
	}
	if a, b := s.UserStats[0].BurstCredits, s.UserStats[1].BurstCredits; a < 3*b || a > 3*b+2 {
		t.Errorf("burst credits are %d at weight 3 and %d at weight 1", a, b)
	}
	for _, field := range []string{"user_id", "weight", "deficit", "burst_credits", "recent_tokens", "active_requests", "total_users", "global_recent_tokens", "fairness_window_seconds", "user_stats", "by_user", "by_model", "average_wait_seconds"} {
		if !strings.Contains(text, `"`+field+`":`) {
			t.Errorf("no %s in %s", field, text)
		}
	}
	// With another discipline there are no fair shares.
	o = testOptions()
	other := start(t, o)
	var plain map[string]any
	if _, text := other.debug("/debug/statistics"); json.Unmarshal([]byte(text), &plain) != nil || len(plain) != 1 {
		t.Errorf("wfq: %s", text)
	}
}
