package dispatch_test

import (
	"testing"

	"github.com/weir-epp/weir/pkg/dispatch"
)

// A limit is shown in the unit that its setting has.
func TestLimitText(t *testing.T) {
	for _, c := range []struct {
		name  string
		value int64
		want  string
	}{
		{dispatch.LimitQueueTTL, 30_000, "30s"},
		{dispatch.LimitBodyTimeout, 1_500, "1.5s"},
		{dispatch.LimitRate, 2_500, "2.5 requests/s"},
		{dispatch.LimitQuota, 100, "100 tokens"},
		{dispatch.LimitFlowCapacity, 100, "100"},
	} {
		l := dispatch.Limit{Name: c.name, Value: c.value}
		if got := l.Text(); got != c.want {
			t.Errorf("%s of %d: %q, want %q", c.name, c.value, got, c.want)
		}
	}
}
