package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
)

// Warnings returns the settings that are allowed but hardly intended, and those without an effect, each with the
// reason. Nothing is said of a profile's own values.
func (d Document) Warnings() []Problem { return d.warnings(false) }

// warnings returns the same, and of an imported document also that reservations of the profile are not held.
func (d Document) warnings(imported bool) []Problem {
	var ws []Problem
	warn := func(path, format string, args ...any) {
		ws = append(ws, Problem{Path: path, Message: fmt.Sprintf(format, args...)})
	}
	d.tierWarnings(warn)
	d.reservationWarnings(warn, imported)
	d.bandWarnings(warn)
	d.watermarkWarning(warn)
	if c := d.RequestQueueController; c.Enabled && c.unbounded() && c.WatermarkTokensPerBackend == 0 {
		warn("requestQueueController.slotsPerBackend", "%s: while a backend is ready, requests wait only for a cap, so shares, "+
			"tiers, classes and reservations have no effect: the engines order their requests", unbounded)
	}
	if c := d.RequestQueueController; c.Enabled && c.Limiter.Rate != 0 {
		warn("requestQueueController.limiter.rate", "%s: has no effect, since requestQueueController.enabled is true", c.Limiter.Rate)
	}
	profile, err := Profile(d.Profile)
	if c := d.RequestQueueController; !c.Enabled && c.EnqueueAll && err == nil && !profile.RequestQueueController.EnqueueAll {
		warn("requestQueueController.enqueueAll", "true: has no effect, since requestQueueController.enabled is false")
	}
	d.identityWarnings(warn)
	d.policyWarnings(warn)
	d.servingWarnings(warn)
	d.tokenWarnings(warn)
	if !d.Flows.identifies() {
		for _, tenant := range slices.Sorted(maps.Keys(d.TenantPolicies)) {
			if tenant != Anonymous {
				warn(join("tenantPolicies", tenant), "matches no tenant, since flows.key has no source of a tenant's "+
					"identity: every tenant is %s", Anonymous)
			}
		}
	}
	return d.inText(ws)
}

type warner func(path, format string, args ...any)

func (d Document) tierWarnings(warn warner) {
	weighted := d.FairRequestQueue.TierMode == TiersWeighted
	if last := len(d.Tiers) - 1; last >= 0 && d.Tiers[last].MinPriority != nil && !d.ownTiers() {
		warn(index("tiers", last)+".minPriority", "%d: no tier has a lower minPriority, so lower priorities go to this tier, as "+
			"with null", *d.Tiers[last].MinPriority)
	}
	for i, t := range d.Tiers {
		path := index("tiers", i) + "."
		timeout := d.FairRequestQueue.QueueTTL
		if t.QueueTimeout != nil {
			timeout = *t.QueueTimeout
		}
		switch {
		case t.StarvationThreshold == nil:
		case weighted:
			warn(path+"starvationThreshold", "%s: has no effect: weighted tiers need no starvation guard", *t.StarvationThreshold)
		case *t.StarvationThreshold >= timeout:
			warn(path+"starvationThreshold", "%s: never fires, since a waiter of this tier expires after %s",
				*t.StarvationThreshold, timeout)
		}
		switch {
		case !t.CanPreempt:
		case weighted:
			warn(path+"canPreempt", "true: has no effect: weighted tiers do not preempt")
		case i == len(d.Tiers)-1:
			warn(path+"canPreempt", "true: has no effect, since there is no lower tier")
		}
		if !weighted && t.Weight != One {
			warn(path+"weight", "%s: has no effect, since fairRequestQueue.tierMode is %s", t.Weight, d.FairRequestQueue.TierMode)
		}
		if n := d.FairRequestQueue.FlowCapacity; t.QueueSize != nil && *t.QueueSize > n &&
			d.Flows.Discipline == DisciplineNone {
			warn(path+"queueSize", "%d: never reached: with flows.discipline none a tier has one flow, of which at most "+
				"fairRequestQueue.flowCapacity (%d) wait", *t.QueueSize, n)
		}
	}
}

func (d Document) reservationWarnings(warn warner, imported bool) {
	highest, shares := d.highestUsable(), Decimal(0)
	profile, _ := Profile(d.Profile)
	most, bounded := d.mostPerBackend()
	for i, t := range d.Tiers {
		path := index("tiers", i) + "."
		own := i < len(profile.Tiers) && reflect.DeepEqual(t, profile.Tiers[i])
		switch {
		case i >= highest:
			shares += min(t.ReservedPerSlot, One)
			if bounded && !own && t.ReservedFloor > most {
				warn(path+"reservedFloor", "%d: needs %d backends of %d requests each: with fewer ready, lower tiers get the "+
					"rest of the capacity", t.ReservedFloor, (t.ReservedFloor+most-1)/most, most)
			}
		case own && !imported && i < profile.highestUsable(): // the profile itself holds nothing for it
		case t.ReservedFloor > 0:
			warn(path+"reservedFloor", "%d: not reserved: no tenant may use tier %s (criticality.maxClass is %s, and no tenant's "+
				"policy goes higher than %s)", t.ReservedFloor, t.Name, d.Criticality.MaxClass, d.Tiers[highest].Name)
		case t.ReservedPerSlot > 0:
			warn(path+"reservedPerSlot", "%s: not reserved: no tenant may use tier %s (criticality.maxClass is %s, and no "+
				"tenant's policy goes higher than %s)", t.ReservedPerSlot, t.Name, d.Criticality.MaxClass, d.Tiers[highest].Name)
		}
	}
	if shares > One {
		warn("tiers", "the tiers' reservedPerSlot add up to %s: the excess over the capacity is taken from the "+
			"lowest tiers", shares)
	}
}

// bandWarnings is about bounds that slotsPerBackend replaces, unless they are the profile's own.
func (d Document) bandWarnings(warn warner) {
	c := d.RequestQueueController
	profile, err := Profile(d.Profile)
	if c.SlotsPerBackend == nil || err != nil {
		return
	}
	if *c.SlotsPerBackend == Auto {
		if d.statesBounds() {
			warn("requestQueueController.slotsPerBackend", "auto: has no effect, since watermarkPerBackend or a bound is set")
		}
		return
	}
	own := profile.RequestQueueController
	for _, bound := range []struct {
		path       string
		value, own *int64
	}{
		{"watermarkPerBackend", &c.WatermarkPerBackend, &own.WatermarkPerBackend},
		{"lowerBoundPerBackend", c.LowerBoundPerBackend, own.LowerBoundPerBackend},
		{"upperBoundPerBackend", c.UpperBoundPerBackend, own.UpperBoundPerBackend},
	} {
		if bound.value == nil || Slots(*bound.value) == *c.SlotsPerBackend || bound.own != nil && *bound.value == *bound.own {
			continue
		}
		warn("requestQueueController."+bound.path, "%d: has no effect, since slotsPerBackend (%v) overrides it",
			*bound.value, *c.SlotsPerBackend)
	}
}

// watermarkWarning says where the stock stands under load, if bounds that somebody wrote keep it below the watermark.
func (d Document) watermarkWarning(warn warner) {
	c := d.RequestQueueController
	profile, err := Profile(d.Profile)
	own := profile.RequestQueueController
	if !c.Enabled || c.SlotsPerBackend != nil && *c.SlotsPerBackend != Auto || d.automatic() || err != nil || c.WatermarkPerBackend == own.WatermarkPerBackend &&
		reflect.DeepEqual(c.LowerBoundPerBackend, own.LowerBoundPerBackend) {
		return
	}
	path, is := "requestQueueController.lowerBoundPerBackend", ""
	switch watermark := c.WatermarkPerBackend; {
	case c.LowerBoundPerBackend == nil:
		path = "requestQueueController.watermarkPerBackend"
		is = fmt.Sprintf("%d: under load each backend stays at the lower bound, which is derived from it: %v", watermark,
			Decimal(watermark)*(One-c.PercentageDeviationForBounds))
	case *c.LowerBoundPerBackend == watermark && (watermark > 1 || c.UpperBoundPerBackend != nil && *c.UpperBoundPerBackend == 1):
		return
	case *c.LowerBoundPerBackend == 1:
		is = "1: under load each backend has one request at a time, and no batch"
	default:
		is = fmt.Sprintf("%d: under load each backend stays at this bound, below the watermark of %d", *c.LowerBoundPerBackend, watermark)
	}
	warn(path, "%s; to keep n batch slots busy (vLLM: --max-num-seqs n), set slotsPerBackend to n", is)
}

// mostPerBackend returns the number of requests that a backend may have by its upper bound, rounded up; false if the
// queue holds nothing back.
func (d Document) mostPerBackend() (n int64, bounded bool) {
	switch c := d.RequestQueueController; {
	case !c.Enabled:
		return 0, false
	case c.unbounded(), d.automatic():
		return 0, false
	case c.SlotsPerBackend != nil && *c.SlotsPerBackend != Auto:
		return int64(*c.SlotsPerBackend), true
	case c.UpperBoundPerBackend != nil:
		return *c.UpperBoundPerBackend, true
	default:
		return (c.WatermarkPerBackend*int64(One+c.PercentageDeviationForBounds) + int64(One) - 1) / int64(One), true
	}
}

// ownTiers reports whether the tiers are the profile's.
func (d Document) ownTiers() bool {
	profile, err := Profile(d.Profile)
	return err == nil && reflect.DeepEqual(d.Tiers, profile.Tiers)
}
