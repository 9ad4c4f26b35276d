package app

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weir-epp/weir/internal/expect"
	"github.com/weir-epp/weir/internal/status"
	"github.com/weir-epp/weir/pkg/flowcontrol"
)

// A rejection names its limit with its value, also a limit of the streams, before the queue, and that of a tenant's
// user. The status document has the same rejections.
func TestRejectionsHaveTheirLimits(t *testing.T) {
	o := testOptions()
	o.ConfigText = "requestQueueController: { watermarkPerBackend: 1, lowerBoundPerBackend: 1, upperBoundPerBackend: 1 }\n" +
		"flows: { levels: [ { key: [\"header:x-org\"] }, { key: [\"header:x-user\"], maxQueued: 2 } ] }\n" +
		"limits: { maxHeaders: 20, maxHeaderBytes: 2000 }"
	r := start(t, o)
	ask := func(more ...[2]string) {
		r.request(t.Context(), append(more, [2]string{"x-org", "o"}, [2]string{"x-user", "u"})...)
	}
	rejected := 0
	wants := func(name string, value int64) {
		t.Helper()
		rejected++
		expect.True(t, name, func() bool { return len(r.pool.controller.Rejections()) == rejected })
		code, text := r.debug("/debug/rejections")
		var all []flowcontrol.Rejected
		if err := json.Unmarshal([]byte(text), &all); err != nil || code != 200 {
			t.Fatalf("%d %v %s", code, err, text)
		}
		if l := all[0].Limit; l == nil || l.Name != name || l.Value != value || l.Shared() || all[0].Text == "" {
			t.Errorf("%+v with %+v, want %s of %d", all[0], l, name, value)
		}
		if s := r.document("").Rejections[0]; s.Limit != name || s.LimitValue != value || s.LimitText != all[0].Limit.Text() || s.Text != all[0].Text || s.Tier != all[0].Tier {
			t.Errorf("the document has %+v", s)
		}
	}
	granted(t, r.request(t.Context(), [2]string{"x-org", "other"}))
	ask()
	ask()
	expect.True(t, "two wait", func() bool { return r.pool.controller.State().Queued == 2 })
	ask()
	wants("user-capacity", 2)
	s := r.document("").Rejections[0]
	if s.Tier != "critical" || !slices.Equal(s.Holders, []status.Holder{{Flow: "o", User: "u", Held: 2}}) {
		t.Errorf("%+v", s)
	}
	ask([2]string{"x-long", strings.Repeat("x", 2000)})
	wants("max-header-bytes", 2000)
	var many [][2]string
	for i := range 20 {
		many = append(many, [2]string{fmt.Sprint("x-", i), "v"})
	}
	ask(many...)
	wants("max-headers", 20)
}
