package config

import (
	"cmp"
	"time"

	"github.com/weir-epp/weir/pkg/estimate"
	"github.com/weir-epp/weir/pkg/extproc"
	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/flowcontrol"
	"github.com/weir-epp/weir/pkg/request"
	"github.com/weir-epp/weir/pkg/scheduling"
	"github.com/weir-epp/weir/pkg/stock"
)

// A document is converted to each package's own configuration, where its values are checked (problemsOfParts). So
// conversion accepts any document, and never turns an invalid value into a valid one.

// FlowcontrolConfig returns the configuration of the controller, its queue and its stock.
func (d *Document) FlowcontrolConfig() flowcontrol.Config {
	c := d.RequestQueueController
	tiers := make([]flowcontrol.TierConfig, len(d.Tiers))
	usable := d.highestUsable()
	for i, t := range d.Tiers {
		if i < usable { // what nobody may use is not held back from the others; Warnings says so
			t.ReservedFloor, t.ReservedPerSlot = min(t.ReservedFloor, 0), min(t.ReservedPerSlot, 0)
		}
		tiers[i] = flowcontrol.TierConfig{
			ReservedFloor: int(t.ReservedFloor), ReservedPerSlot: stock.Micro(t.ReservedPerSlot.Millionths()),
			CanPreempt: t.CanPreempt,
		}
	}
	cfg := flowcontrol.DefaultConfig()
	cfg.Queue, cfg.Stock, cfg.Tiers = d.fairqueueConfig(), d.stockConfig(), tiers
	cfg.Enabled, cfg.EnqueueAll, cfg.HoldWhenEmpty = c.Enabled, c.EnqueueAll, c.HoldWhenEmpty
	cfg.NumPoppers = int(c.NumPoppers)
	cfg.PopperWaitBase, cfg.PopperWaitJitterMax = c.PopperWaitBase.Std(), c.PopperWaitJitterMax.Std()
	cfg.ExpiryCleanupInterval = c.ExpiryCleanupInterval.Std()
	cfg.ReleaseSpacing = c.ReleaseSpacing.Std()
	cfg.MaxInFlightPerFlow = int(c.MaxInFlightPerFlow)
	cfg.MaxInFlightPerFlowPerBackend = int(c.MaxInFlightPerFlowPerBackend)
	cfg.MaxTokensInFlightPerFlow = stock.Tokens(c.MaxTokensInFlightPerFlow)
	cfg.MaxTokensInFlightPerFlowPerBackend = stock.Tokens(c.MaxTokensInFlightPerFlowPerBackend)
	if c.VictimOrder == VictimLeastCost {
		cfg.VictimOrder = flowcontrol.LeastCostFirst
	}
	// Labels take memory for good, flows only while they are known: fewer flows mean fewer labels, not more.
	cfg.MaxLabels = int(min(int64(cfg.MaxLabels), d.Limits.MaxFlows))
	return cfg
}

func (d *Document) fairqueueConfig() fairqueue.Config {
	q := d.FairRequestQueue
	cfg := fairqueue.Config{
		TotalCapacity:   int(q.TotalCapacity),
		FlowCapacity:    int(q.FlowCapacity),
		FlowCapacities:  make(map[string]int, len(d.Flows.Capacities)),
		QueueTTL:        q.QueueTTL.Std(),
		Weights:         make(map[string]fairqueue.Weight, len(d.Flows.Weights)),
		PromotionBudget: q.PromotionBudget.Millionths(),
		GuaranteedTop:   q.TopTier == TopGuaranteed,
		Order:           order(d.Flows.Order),
	}
	for flow, n := range d.Flows.Capacities {
		cfg.FlowCapacities[flow] = int(n)
	}
	for flow, w := range d.Flows.Weights {
		cfg.Weights[flow] = weight(w)
	}
	switch q.CapacityMode {
	case CapacityShared:
		cfg.CapacityMode = fairqueue.Shared
	case CapacityReject:
		cfg.CapacityMode = fairqueue.Reject
	}
	if q.TierMode == TiersWeighted {
		cfg.TierMode = fairqueue.Weighted
	}
	switch d.Flows.Discipline {
	case DisciplineNone:
		cfg.Discipline = fairqueue.OneFlow
	case DisciplineVTC:
		cfg.Discipline = fairqueue.VTC
	}
	if q.Cursor == CursorAdvance {
		cfg.Cursor = fairqueue.Advance
	}
	cfg.Priorities = d.PolicyClass.PriorityHeader != "" || d.PolicyClass.StrictPriorityHeader != ""
	for _, c := range d.Classes {
		cfg.Classes = append(cfg.Classes, fairqueue.ClassConfig{
			Name: c.Name, Quantum: fairqueue.Cost(c.Quantum), Order: order(cmp.Or(c.Order, d.Flows.Order)),
		})
	}
	if d.Flows.TieBreak == FlowTieNewcomer {
		cfg.TieBreak = fairqueue.NewcomerFirst
	}
	for _, t := range d.Tiers {
		cfg.Tiers = append(cfg.Tiers, fairqueue.TierConfig{
			Name:                t.Name,
			Weight:              weight(Decimal(given(&t.Weight, 0))),
			QueueSize:           int(given(t.QueueSize, fairqueue.NoLimit)),
			QueueTimeout:        time.Duration(given(t.QueueTimeout, 0)),
			StarvationThreshold: time.Duration(given(t.StarvationThreshold, 0)),
		})
	}
	return cfg
}

// order converts the word of an order.
func order(word string) fairqueue.Order {
	switch word {
	case OrderWSPT:
		return fairqueue.WSPT
	case OrderEDF:
		return fairqueue.EDF
	default:
		return fairqueue.FCFS
	}
}

// weight converts a decimal to the queue's fixed point, which counts millionths too.
func weight(d Decimal) fairqueue.Weight { return fairqueue.Weight(d.Millionths()) }

// given returns the value of a key for a package in which unset stands for "not given". A given value is never mistaken
// for that: if it equals unset, given returns the number below it, which the package refuses.
func given[T ~int64](value *T, unset int64) int64 {
	switch {
	case value == nil:
		return unset
	case int64(*value) == unset:
		return unset - 1
	default:
		return int64(*value)
	}
}

func (d *Document) stockConfig() stock.Config {
	c := d.RequestQueueController
	return stock.Config{
		WatermarkPerBackend:          int(c.WatermarkPerBackend),
		PercentageDeviationForBounds: stock.Micro(c.PercentageDeviationForBounds.Millionths()),
		LowerBoundPerBackend:         int(given(c.LowerBoundPerBackend, stock.Derived)),
		UpperBoundPerBackend:         int(given(c.UpperBoundPerBackend, stock.Derived)),
		SlotsPerBackend:              c.slots(),
		Unbounded:                    c.unbounded(),
		Tokens: stock.TokensConfig{
			Watermark: stock.Tokens(c.WatermarkTokensPerBackend),
			Lower:     stock.Tokens(given(c.LowerBoundTokensPerBackend, 0)),
			Upper:     stock.Tokens(given(c.UpperBoundTokensPerBackend, 0)),
		},
	}
}

// SchedulingConfig returns the configuration of the scheduler.
func (d *Document) SchedulingConfig() scheduling.Config {
	cfg := scheduling.Config{
		Filters: d.Scheduling.Filters, Picker: d.Scheduling.Picker, TieBreak: d.Scheduling.TieBreak,
		Fallbacks: int(d.Scheduling.Fallbacks),
	}
	for _, s := range d.Scheduling.Scorers {
		cfg.Scorers = append(cfg.Scorers, scheduling.ScorerConfig{Name: s.Name, Weight: int(s.Weight)})
	}
	return cfg
}

func (d *Document) estimateConfig() estimate.Config {
	w, s, in, out := d.Tokens.Weights, d.Tokens.StockWeights, d.Tokens.Input, d.Tokens.Output
	return estimate.Config{
		Weights: estimate.Weights{
			Input: estimate.Weight(w.Input.Millionths()), CachedInput: estimate.Weight(w.CachedInput.Millionths()),
			Output: estimate.Weight(w.Output.Millionths()),
		},
		StockWeights: estimate.Weights{
			Input: estimate.Weight(s.Input.Millionths()), CachedInput: estimate.Weight(s.CachedInput.Millionths()),
			Output: estimate.Weight(s.Output.Millionths()),
		},
		ColdRatio: in.BytesPerToken.Millionths(), Quantile: out.Quantile.Millionths(), Window: out.Window, Floor: out.Floor,
		ColdOutput: out.ColdStart, ColdRate: out.ColdRate,
	}
}

// ExtprocConfig returns the configuration of the streams.
func (d *Document) ExtprocConfig() extproc.Config {
	cfg := extproc.DefaultConfig() // for what has no key
	cfg.FlowKey = d.Flows.Key
	cfg.Models, cfg.Objectives, cfg.Tiers = nil, nil, nil
	for _, m := range d.Models {
		model := request.Model{Name: m.Name, Criticality: m.Criticality}
		for _, t := range m.Targets {
			model.Targets = append(model.Targets, request.Target{Name: t.Name, Weight: int(t.Weight)})
		}
		cfg.Models = append(cfg.Models, model)
	}
	for _, o := range d.Objectives {
		cfg.Objectives = append(cfg.Objectives, request.Objective{Name: o.Name, Priority: int(o.Priority)})
	}
	cfg.TenantPolicies = make(map[string]request.TenantPolicy, 1+len(d.TenantPolicies))
	for tenant, p := range d.TenantPolicies {
		cfg.TenantPolicies[tenant] = request.TenantPolicy{Class: p.Class, MaxClass: p.MaxClass}
	}
	delete(cfg.TenantPolicies, request.OtherTenants) // no tenant's name (tenantProblems)
	if d.Criticality.MaxClass != "" {
		cfg.TenantPolicies[request.OtherTenants] = request.TenantPolicy{MaxClass: d.Criticality.MaxClass}
	}
	cfg.Criticality = request.Criticality{
		Header: d.Criticality.Header, Metadata: d.Criticality.Metadata, Default: d.Criticality.Default,
		ObjectiveHeaders: d.Criticality.ObjectiveHeaders,
	}
	for _, t := range d.Tiers {
		tier := request.Tier{Name: t.Name}
		if t.MinPriority != nil {
			tier.MinPriority = new(int(*t.MinPriority))
		}
		cfg.Tiers = append(cfg.Tiers, tier)
	}
	cfg.PolicyClass = request.PolicyClass{
		Headers: d.PolicyClass.Headers, PriorityHeader: d.PolicyClass.PriorityHeader,
		StrictPriorityHeader: d.PolicyClass.StrictPriorityHeader, MaxStrictPriority: int(d.PolicyClass.MaxStrictPriority),
	}
	cfg.TrustedHeaders = request.TrustedHeaders{Model: d.TrustedHeaders.Model, Cost: d.TrustedHeaders.Cost, InputTokens: d.TrustedHeaders.InputTokens}
	cfg.Cost, cfg.Usage, cfg.Tokens = extproc.CostUnit(d.Cost), extproc.UsageWay(d.Usage), d.estimateConfig()
	cfg.IncludeUsage = d.Tokens.IncludeUsage
	cfg.RequestBody = request.BodyPolicy(d.RequestBody)
	cfg.PassOn, cfg.PassOnPaths = request.PassOnPolicy(d.PassOn), d.PassOnPaths
	cfg.UnknownModels = request.UnknownModelsPolicy(d.Flows.UnknownModels)
	cfg.Anonymous = request.AnonymousPolicy(d.Flows.Anonymous)
	cfg.OneFlow = d.Flows.Discipline == DisciplineNone
	cfg.Limits = request.Limits{
		MaxBodyBytes: d.Limits.MaxBodyBytes, MaxBodyBytesTotal: d.Limits.MaxBodyBytesTotal,
		MaxHeaderBytes: d.Limits.MaxHeaderBytes, MaxHeaders: d.Limits.MaxHeaders, BodyTimeout: d.Limits.BodyTimeout.Std(),
	}
	cfg.LongestWait = d.longestWait()
	cfg.Responses = extproc.Responses{
		Preset: d.Responses.Preset, Status: make(map[string]int, len(d.Responses.Status)), Metadata: d.Responses.Metadata,
		QueueState: d.Responses.QueueState,
	}
	for reason, status := range d.Responses.Status {
		cfg.Responses.Status[reason] = int(status)
	}
	cfg.DeadlineHeaders = d.RequestQueueController.DeadlineHeaders
	return cfg
}

// longestWait returns the longest TTL of any tier.
func (d *Document) longestWait() time.Duration {
	var longest Duration
	for _, t := range d.Tiers {
		if t.QueueTimeout != nil {
			longest = max(longest, *t.QueueTimeout)
		} else {
			longest = max(longest, d.FairRequestQueue.QueueTTL)
		}
	}
	return longest.Std()
}
