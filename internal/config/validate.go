package config

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/weir-epp/weir/internal/spelling"
)

// longestHold is the longest that Envoy holds a request for an external processor (max_message_timeout), and so the
// longest time in the queue.
const longestHold = Duration(3600 * time.Second)

// longestSpacing is the controller's own bound.
const longestSpacing = Duration(time.Second)

// maxPerBackend is the largest watermark, bound or number of slots of one backend, in requests.
const maxPerBackend = 1_000_000

// The weights of flows and tiers, which the queue's fixed point holds.
var (
	minWeight = MustDecimal("0.001")
	maxWeight = MustDecimal("1000000")
)

// maxTiers bounds the ranks.
const maxTiers = 32

// maxBody is the largest gRPC message that a body may come in.
const maxBody = 1 << 30

// problems checks every field, and fields against each other.
func (d Document) problems() Problems {
	var ps Problems
	if d.APIVersion != APIVersion {
		ps.add("apiVersion", d.APIVersion, "must be %s", APIVersion)
	}
	if d.Kind != Kind {
		ps.add("kind", d.Kind, "must be %s", Kind)
	}
	ps.oneOf("profile", d.Profile, Profiles())
	if c := d.RequestQueueController; d.Flows.Discipline == DisciplineNone {
		const want = "must be 0 with flows.discipline none, which knows no flows"
		if c.MaxInFlightPerFlow > 0 {
			ps.add("requestQueueController.maxInFlightPerFlow", c.MaxInFlightPerFlow, want)
		}
		if c.MaxInFlightPerFlowPerBackend > 0 {
			ps.add("requestQueueController.maxInFlightPerFlowPerBackend", c.MaxInFlightPerFlowPerBackend, want)
		}
	}
	d.FairRequestQueue.problems(&ps)
	d.RequestQueueController.problems(&ps)
	d.flowProblems(&ps)
	d.tierProblems(&ps)
	d.modelProblems(&ps)
	d.servingProblems(&ps)
	return ps
}

func (q FairRequestQueue) problems(ps *Problems) {
	const at = "fairRequestQueue."
	atLeast(ps, at+"totalCapacity", q.TotalCapacity, 1)
	if atLeast(ps, at+"flowCapacity", q.FlowCapacity, 1) && q.TotalCapacity >= 1 && q.FlowCapacity > q.TotalCapacity {
		ps.add(at+"flowCapacity", q.FlowCapacity, "must be at most totalCapacity (%d)", q.TotalCapacity)
	}
	ps.hold(at+"queueTTL", q.QueueTTL)
	ps.oneOf(at+"capacityMode", q.CapacityMode, capacityModes)
	ps.oneOf(at+"tierMode", q.TierMode, tierModes)
	ps.oneOf(at+"topTier", q.TopTier, topTiers)
	if q.PromotionBudget < 0 || q.PromotionBudget > One {
		ps.add(at+"promotionBudget", q.PromotionBudget, "must be from 0 to 1")
	}
}

func (c RequestQueueController) problems(ps *Problems) {
	const at = "requestQueueController."
	if c.PercentageDeviationForBounds <= 0 || c.PercentageDeviationForBounds >= One {
		ps.add(at+"percentageDeviationForBounds", c.PercentageDeviationForBounds, "must be above 0 and below 1")
	}
	c.bandProblems(ps, at)
	if c.SlotsPerBackend != nil {
		within(ps, at+"slotsPerBackend", *c.SlotsPerBackend, 1, maxPerBackend)
	}
	within(ps, at+"numPoppers", c.NumPoppers, 1, 1000)
	positive(ps, at+"popperWaitBase", c.PopperWaitBase)
	atLeast(ps, at+"popperWaitJitterMax", c.PopperWaitJitterMax, 0)
	positive(ps, at+"expiryCleanupInterval", c.ExpiryCleanupInterval)
	if c.ReleaseSpacing < 0 || c.ReleaseSpacing > longestSpacing {
		ps.add(at+"releaseSpacing", c.ReleaseSpacing, "must be from 0s to %s", longestSpacing)
	}
	atLeast(ps, at+"maxInFlightPerFlow", c.MaxInFlightPerFlow, 0)
	atLeast(ps, at+"maxInFlightPerFlowPerBackend", c.MaxInFlightPerFlowPerBackend, 0)
	ps.oneOf(at+"victimOrder", c.VictimOrder, victimOrders)
	if c.DrainWindow < 0 || c.DrainWindow > longestHold {
		ps.add(at+"drainWindow", c.DrainWindow, "must be from 0s to %s", longestHold)
	} else if c.MinDrain > c.DrainWindow {
		ps.add(at+"minDrain", c.MinDrain, "must be at most drainWindow (%s)", c.DrainWindow)
	}
	atLeast(ps, at+"minDrain", c.MinDrain, 0)
	for i, name := range c.DeadlineHeaders {
		ps.headerName(index(at+"deadlineHeaders", i), name)
	}
}

// bandProblems checks lower <= watermark <= upper. Bounds that are derived from the watermark are always right.
func (c RequestQueueController) bandProblems(ps *Problems, at string) {
	const advice = "to keep n batch slots busy, set watermarkPerBackend, lowerBoundPerBackend and " +
		"upperBoundPerBackend all to n"
	if !within(ps, at+"watermarkPerBackend", c.WatermarkPerBackend, 1, maxPerBackend) {
		return
	}
	if lower := c.LowerBoundPerBackend; lower != nil && atLeast(ps, at+"lowerBoundPerBackend", *lower, 0) &&
		*lower > c.WatermarkPerBackend {
		ps.add(at+"lowerBoundPerBackend", *lower, "must be at most watermarkPerBackend (%d); %s",
			c.WatermarkPerBackend, advice)
	}
	switch upper := c.UpperBoundPerBackend; {
	case upper == nil:
	case *upper > maxPerBackend:
		ps.add(at+"upperBoundPerBackend", *upper, "must be at most %d", maxPerBackend)
	case *upper < c.WatermarkPerBackend:
		ps.add(at+"upperBoundPerBackend", *upper, "must be at least watermarkPerBackend (%d); %s",
			c.WatermarkPerBackend, advice)
	}
}

// oneOf checks a word against the known ones.
func (ps *Problems) oneOf(path, word string, known []string) {
	if !slices.Contains(known, word) {
		ps.add(path, word, "must be one of %s%s", strings.Join(known, ", "), spelling.Suggest(word, known))
	}
}

// hold checks a time that a request may be held for.
func (ps *Problems) hold(path string, d Duration) {
	if d <= 0 || d > longestHold {
		ps.add(path, d, "must be above 0s and at most %s", longestHold)
	}
}

// headerName checks the name of a request header.
func (ps *Problems) headerName(path, name string) {
	token := func(c byte) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
			strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0
	}
	for i := range len(name) {
		if !token(name[i]) {
			ps.add(path, name, "must be the name of a header")
			return
		}
	}
	if name == "" {
		ps.add(path, name, "must be the name of a header")
	}
}

// unique checks that a name is given and is not one of those before it, and remembers it.
func (ps *Problems) unique(path, name string, seen map[string]bool) {
	switch {
	case name == "":
		ps.add(path, name, "must be given")
	case seen[name]:
		ps.add(path, name, "must be unique")
	}
	seen[name] = true
}

func atLeast[T cmp.Ordered](ps *Problems, path string, value, least T) bool {
	if value < least {
		ps.add(path, value, "must be at least %v", least)
		return false
	}
	return true
}

func within[T cmp.Ordered](ps *Problems, path string, value, least, most T) bool {
	if value < least || value > most {
		ps.add(path, value, "must be from %v to %v", least, most)
		return false
	}
	return true
}

func positive[T ~int64](ps *Problems, path string, value T) bool {
	if value <= 0 {
		ps.add(path, value, "must be above %v", T(0))
		return false
	}
	return true
}
