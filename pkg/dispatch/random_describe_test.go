package dispatch_test

import (
	"fmt"
	"strings"

	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/scheduling"
)

// Scenes in words.

// String describes the scene like a bug report: the configuration, the senders, and the changes.
func (s *scene) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "for %v, with %s\n", s.length, describeConfig(s.config))
	fmt.Fprintf(&b, "pool: %s\n", describePool(s.pool))
	for _, l := range s.loads {
		fmt.Fprintln(&b, l)
	}
	for _, c := range s.changes {
		switch {
		case c.config != nil:
			fmt.Fprintf(&b, "%v: reload: %s\n", c.at, describeConfig(*c.config))
		case c.pool != nil:
			fmt.Fprintf(&b, "%v: pool: %s\n", c.at, describePool(c.pool))
		default:
			fmt.Fprintf(&b, "%v: others hold %+v\n", c.at, c.foreign)
		}
	}
	return b.String()
}

func describeConfig(cfg dispatch.Config) string {
	q, s := cfg.Queue, cfg.Stock
	text := fmt.Sprintf("discipline %d, capacity mode %d of %d and %d per flow, tie-break %d, weighted tiers %t, levels %d, TTL %v, "+
		"order %d, promotions %d, guaranteed top %t, priorities %t, cursor %d\n  weights %v, enabled %t, enqueue all %t, hold %t, "+
		"victims %d, spacing %v, caps %d %d %d %d\n",
		q.Discipline, q.CapacityMode, q.TotalCapacity, q.FlowCapacity, q.TieBreak, q.TierMode == fairqueue.Weighted, q.Levels, q.QueueTTL, q.Order,
		q.PromotionBudget, q.GuaranteedTop, q.Priorities, q.Cursor, q.Weights, cfg.Enabled, cfg.EnqueueAll, cfg.HoldWhenEmpty,
		cfg.VictimOrder, cfg.ReleaseSpacing, cfg.MaxInFlightPerFlow, cfg.MaxInFlightPerFlowPerBackend,
		cfg.MaxTokensInFlightPerFlow, cfg.MaxTokensInFlightPerFlowPerBackend)
	for i, t := range q.Tiers {
		text += fmt.Sprintf("  tier %+v %+v\n", t, cfg.Tiers[i])
	}
	for i, c := range q.Classes {
		text += fmt.Sprintf("  class %+v\n", c)
		if len(cfg.Classes) > 0 {
			text += fmt.Sprintf("    busy %s\n", describeBusy(&cfg.Classes[i].Busy))
		}
	}
	if len(q.Roles)+len(cfg.Quotas.Tenants)+len(cfg.Quotas.Roles) > 0 {
		text += fmt.Sprintf("  roles %v %v, quotas %v\n", q.Roles, cfg.Roles, cfg.Quotas)
	}
	return text + fmt.Sprintf("  stock %+v", s)
}

func describePool(pool []scheduling.Endpoint) string {
	var b strings.Builder
	for _, e := range pool {
		fmt.Fprintf(&b, "%d", e.ID)
		if !e.Ready {
			b.WriteString(" not ready")
		}
		if e.Models != nil {
			fmt.Fprintf(&b, " models %v", e.Models)
		}
		if e.Lacks != 0 {
			fmt.Fprintf(&b, " lacks %v", e.Lacks)
		}
		if e.Slots+e.MaxInFlight > 0 {
			fmt.Fprintf(&b, " slots %d limit %d", e.Slots, e.MaxInFlight)
		}
		b.WriteString("; ")
	}
	return b.String()
}

// String describes a load in one line.
func (l load) String() string {
	how := fmt.Sprintf("%d clients, pausing %v", l.clients, l.pause)
	if l.clients == 0 {
		how = fmt.Sprintf("one each %v", l.pause)
	}
	path := ""
	if l.path != nil {
		path = fmt.Sprintf(" path %+v", *l.path)
	}
	return fmt.Sprintf("load %d: tier %s flow %s%s, model %q, subset %v: %s, from %v for %v; runs %v, cost %d×%d, tokens ×%d, estimates %d, fates %+v",
		l.id, l.tier, l.flow, path, l.ask.Model, l.ask.Subset.Entries, how, l.begins, l.lasts, l.runs, l.cost, l.spread, l.factor, l.estimates, l.fates)
}
