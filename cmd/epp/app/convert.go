package app

import (
	"github.com/weir-epp/weir/internal/config"
	"github.com/weir-epp/weir/pkg/datastore"
	"github.com/weir-epp/weir/pkg/extproc"
	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/flowcontrol"
	"github.com/weir-epp/weir/pkg/scheduling"
	"github.com/weir-epp/weir/pkg/stock"
)

// A valid document becomes each package's own configuration. What cannot be said there is not accepted by
// config.Load, so nothing is lost here.

func flowcontrolConfig(d *config.Document) flowcontrol.Config {
	c := d.RequestQueueController
	tiers := make([]flowcontrol.TierConfig, len(d.Tiers))
	usable := d.HighestUsable()
	for i, t := range d.Tiers {
		tiers[i] = flowcontrol.TierConfig{CanPreempt: t.CanPreempt}
		if i >= usable { // what nobody may use is not held back from the others; config.Warnings says so
			tiers[i].ReservedFloor = int(t.ReservedFloor)
			tiers[i].ReservedPerSlot = stock.Micro(t.ReservedPerSlot.Millionths())
		}
	}
	cfg := flowcontrol.DefaultConfig()
	cfg.Queue, cfg.Stock, cfg.Tiers = fairqueueConfig(d), stockConfig(d), tiers
	cfg.Enabled, cfg.EnqueueAll, cfg.HoldWhenEmpty = c.Enabled, c.EnqueueAll, c.HoldWhenEmpty
	cfg.NumPoppers = int(c.NumPoppers)
	cfg.PopperWaitBase, cfg.PopperWaitJitterMax = c.PopperWaitBase.Std(), c.PopperWaitJitterMax.Std()
	cfg.ExpiryCleanupInterval = c.ExpiryCleanupInterval.Std()
	cfg.ReleaseSpacing = c.ReleaseSpacing.Std()
	cfg.MaxInFlightPerFlow = int(c.MaxInFlightPerFlow)
	cfg.MaxInFlightPerFlowPerBackend = int(c.MaxInFlightPerFlowPerBackend)
	if c.VictimOrder == config.VictimLeastCost {
		cfg.VictimOrder = flowcontrol.LeastCostFirst
	}
	// Labels cost memory for good, flows only while they are known: fewer flows mean fewer labels, not more.
	cfg.MaxLabels = int(min(int64(cfg.MaxLabels), d.Limits.MaxFlows))
	return cfg
}

func fairqueueConfig(d *config.Document) fairqueue.Config {
	q := d.FairRequestQueue
	cfg := fairqueue.Config{
		TotalCapacity:   int(q.TotalCapacity),
		FlowCapacity:    int(q.FlowCapacity),
		FlowCapacities:  make(map[string]int, len(d.Flows.Capacities)),
		QueueTTL:        q.QueueTTL.Std(),
		Weights:         make(map[string]fairqueue.Weight, len(d.Flows.Weights)),
		PromotionBudget: q.PromotionBudget.Millionths(),
		GuaranteedTop:   q.TopTier == config.TopGuaranteed,
	}
	for flow, n := range d.Flows.Capacities {
		cfg.FlowCapacities[flow] = int(n)
	}
	for flow, w := range d.Flows.Weights {
		cfg.Weights[flow] = weight(w)
	}
	if q.CapacityMode == config.CapacityShared {
		cfg.CapacityMode = fairqueue.Shared
	}
	if q.TierMode == config.TiersWeighted {
		cfg.TierMode = fairqueue.Weighted
	}
	if d.Flows.Discipline == config.DisciplineNone {
		cfg.Discipline = fairqueue.OneFlow
	}
	if d.Flows.TieBreak == config.FlowTieNewcomer {
		cfg.TieBreak = fairqueue.NewcomerFirst
	}
	for _, t := range d.Tiers {
		tier := fairqueue.TierConfig{Name: t.Name, Weight: weight(t.Weight), QueueSize: -1}
		if t.QueueSize != nil {
			tier.QueueSize = int(*t.QueueSize)
		}
		if t.QueueTimeout != nil {
			tier.QueueTimeout = t.QueueTimeout.Std()
		}
		if t.StarvationThreshold != nil {
			tier.StarvationThreshold = t.StarvationThreshold.Std()
		}
		cfg.Tiers = append(cfg.Tiers, tier)
	}
	return cfg
}

// weight is a decimal in the queue's fixed point, which counts millionths too.
func weight(d config.Decimal) fairqueue.Weight {
	return fairqueue.Weight(d.Millionths()) * fairqueue.WeightOne / fairqueue.Weight(config.One)
}

func stockConfig(d *config.Document) stock.Config {
	c := d.RequestQueueController
	cfg := stock.Config{
		WatermarkPerBackend:          int(c.WatermarkPerBackend),
		PercentageDeviationForBounds: stock.Micro(c.PercentageDeviationForBounds.Millionths()),
		LowerBoundPerBackend:         -1,
		UpperBoundPerBackend:         -1,
	}
	if c.LowerBoundPerBackend != nil {
		cfg.LowerBoundPerBackend = int(*c.LowerBoundPerBackend)
	}
	if c.UpperBoundPerBackend != nil {
		cfg.UpperBoundPerBackend = int(*c.UpperBoundPerBackend)
	}
	if c.SlotsPerBackend != nil {
		cfg.SlotsPerBackend = int(*c.SlotsPerBackend)
	}
	return cfg
}

func schedulingConfig(d *config.Document) scheduling.Config {
	cfg := scheduling.Config{
		Filters: d.Scheduling.Filters, Picker: d.Scheduling.Picker, TieBreak: d.Scheduling.TieBreak,
		Fallbacks: int(d.Scheduling.Fallbacks),
	}
	for _, s := range d.Scheduling.Scorers {
		cfg.Scorers = append(cfg.Scorers, scheduling.ScorerConfig{Name: s.Name, Weight: int(s.Weight)})
	}
	return cfg
}

// otherTenants is extproc's name for the tenants that have no policy.
const otherTenants = "*"

func extprocConfig(d *config.Document) extproc.Config {
	cfg := extproc.DefaultConfig() // for what has no key
	cfg.FlowKey = d.Flows.Key
	cfg.Models, cfg.Objectives, cfg.Tiers = nil, nil, nil
	for _, m := range d.Models {
		model := extproc.Model{Name: m.Name, Criticality: m.Criticality}
		for _, t := range m.Targets {
			model.Targets = append(model.Targets, extproc.Target{Name: t.Name, Weight: int(t.Weight)})
		}
		cfg.Models = append(cfg.Models, model)
	}
	for _, o := range d.Objectives {
		cfg.Objectives = append(cfg.Objectives, extproc.Objective{Name: o.Name, Priority: int(o.Priority)})
	}
	cfg.TenantPolicies = make(map[string]extproc.TenantPolicy, 1+len(d.TenantPolicies))
	if d.Criticality.MaxClass != "" {
		cfg.TenantPolicies[otherTenants] = extproc.TenantPolicy{MaxClass: d.Criticality.MaxClass}
	}
	for tenant, p := range d.TenantPolicies {
		cfg.TenantPolicies[tenant] = extproc.TenantPolicy{MaxClass: p.MaxClass}
	}
	cfg.Criticality = extproc.Criticality{
		Header: d.Criticality.Header, Metadata: d.Criticality.Metadata, Default: d.Criticality.Default,
		ObjectiveHeaders: d.Criticality.ObjectiveHeaders,
	}
	for _, t := range d.Tiers {
		tier := extproc.Tier{Name: t.Name}
		if t.MinPriority != nil {
			tier.MinPriority = new(int(*t.MinPriority))
		}
		cfg.Tiers = append(cfg.Tiers, tier)
	}
	cfg.TrustedHeaders = extproc.TrustedHeaders{Model: d.TrustedHeaders.Model, Cost: d.TrustedHeaders.Cost}
	cfg.RequestBody = extproc.BodyPolicy(d.RequestBody)
	cfg.PassOn, cfg.PassOnPaths = extproc.PassOnPolicy(d.PassOn), d.PassOnPaths
	cfg.UnknownModels = extproc.UnknownModelsPolicy(d.Flows.UnknownModels)
	cfg.OneFlow = d.Flows.Discipline == config.DisciplineNone
	cfg.Limits = extproc.Limits{
		MaxBodyBytes: d.Limits.MaxBodyBytes, MaxBodyBytesTotal: d.Limits.MaxBodyBytesTotal,
		MaxHeaderBytes: d.Limits.MaxHeaderBytes, BodyTimeout: d.Limits.BodyTimeout.Std(),
	}
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

// datastore is the pool's configuration.
func (o *Options) datastore() datastore.Config {
	cfg := datastore.DefaultConfig()
	cfg.Endpoints, cfg.File = o.Endpoints, o.EndpointsFile
	cfg.Probe.Enabled = o.ProbePath != ""
	cfg.Probe.Path, cfg.Probe.Guessed, cfg.Probe.Interval = o.ProbePath, o.ProbeGuessed, o.ProbeInterval
	return cfg
}
