package app

import (
	"fmt"

	"github.com/weir-epp/weir/internal/config"
)

// inUse returns the settings at the start, as keys and values for the log: the profile, the bounds of a backend without
// reported slots, the unit of cost, the source of usage, the endpoints' reported slots, and the profile's keys changed
// by the file and the flags.
func (a *App) inUse(d *config.Document) []any {
	c := d.RequestQueueController
	lower, upper := bounds(d)
	stated := []string{}
	if profile, err := config.Profile(d.Profile); err == nil {
		stated = append(stated, config.Changed(profile, *d)...)
	}
	learned, all := 0, a.pool.store.Current()
	for i := range all.Len() {
		if all.At(i).Slots > 0 {
			learned++
		}
	}
	pairs := []any{"profile", d.Profile, "lowerBoundPerBackend", lower, "upperBoundPerBackend", upper}
	if c.WatermarkTokensPerBackend > 0 {
		pairs = append(pairs, "watermarkTokensPerBackend", c.WatermarkTokensPerBackend)
	}
	return append(pairs, "cost", d.Cost, "usage", d.Usage,
		"learned", fmt.Sprintf("slots of %d of %d endpoints", learned, all.Len()), "stated", stated)
}

// bounds returns the lower and the upper bound of a backend without reported slots.
func bounds(d *config.Document) (lower, upper string) {
	c := &d.RequestQueueController
	if c.SlotsPerBackend != nil && (*c.SlotsPerBackend != config.Auto || d.FlowcontrolConfig().Stock.Follow) {
		return fmt.Sprint(*c.SlotsPerBackend), fmt.Sprint(*c.SlotsPerBackend)
	}
	watermark := config.Decimal(c.WatermarkPerBackend)
	bound := func(given *int64, derived config.Decimal) string {
		if given != nil {
			return fmt.Sprint(*given)
		}
		return fmt.Sprint(derived)
	}
	return bound(c.LowerBoundPerBackend, watermark*(config.One-c.PercentageDeviationForBounds)),
		bound(c.UpperBoundPerBackend, watermark*(config.One+c.PercentageDeviationForBounds))
}
