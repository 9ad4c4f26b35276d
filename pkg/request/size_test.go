package request

import (
	"testing"

	"github.com/weir-epp/weir/pkg/fairqueue"
)

// The gateway may state the cost: a whole number of at least 1. Anything else states none.
func TestStatedCost(t *testing.T) {
	for value, want := range map[string]fairqueue.Cost{"17": 17, "0": 0, "-3": 0, "many": 0, "": 0, "9999999999999": fairqueue.MaxCost} {
		s := sent{cfg: DefaultConfig(), headers: chat("x-cost", value, "x-gateway-model-name", "m")}
		s.cfg.TrustedHeaders.Cost = "x-cost"
		if got := s.must(t).StatedCost; got != want {
			t.Errorf("%q: cost %d", value, got)
		}
	}
}
