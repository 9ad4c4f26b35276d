package flowcontrol

import (
	"testing"
	"time"

	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/stock"
)

// All problems are reported at once, including those of the queue and the stock, by field name.
func TestValidate(t *testing.T) {
	cfg := DefaultConfig()
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	cfg.Queue.TotalCapacity, cfg.Stock.WatermarkPerBackend = 0, 0
	cfg.Tiers = []dispatch.TierConfig{{ReservedFloor: -1}, {ReservedPerSlot: -stock.One}}
	cfg.PopperWaitBase, cfg.PopperWaitJitterMax, cfg.ExpiryCleanupInterval = 0, -1, 0
	cfg.ReleaseSpacing = dispatch.MaxReleaseSpacing + time.Millisecond
	cfg.MaxInFlightPerFlow, cfg.MaxInFlightPerFlowPerBackend = -1, -2
	cfg.NumPoppers, cfg.MaxLabels = maxPoppers+1, 0
	err := cfg.Validate()
	const want = `Queue.TotalCapacity: 0: must be at least 1
Stock.WatermarkPerBackend: 0: must be from 1 to 1000000
Tiers: 2 tiers: must be as many as Queue.Tiers (1)
Tiers[0].ReservedFloor: -1: must be at least 0
Tiers[1].ReservedPerSlot: -1: must be at least 0
PopperWaitBase: 0s: must be above 0s
PopperWaitJitterMax: -1ns: must be at least 0s
ExpiryCleanupInterval: 0s: must be above 0s
ReleaseSpacing: 1.001s: must be from 0s to 1s
MaxInFlightPerFlow: -1: must be at least 0
MaxInFlightPerFlowPerBackend: -2: must be at least 0
NumPoppers: 1001: must be from 1 to 1000
MaxLabels: 0: must be at least 1`
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}
