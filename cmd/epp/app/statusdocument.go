package app

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/weir-epp/weir/internal/config"
	"github.com/weir-epp/weir/internal/status"
	"github.com/weir-epp/weir/internal/version"
	"github.com/weir-epp/weir/pkg/flowcontrol"
	"github.com/weir-epp/weir/pkg/scheduling"
)

// statusDocumentPage writes the state of this epp as JSON, for weir status and weir top.
func (a *App) statusDocumentPage(w http.ResponseWriter, r *http.Request) {
	q, err := status.ParseQuery(r.URL.Query())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	text, err := a.statusDocument(&q, time.Now()).Encode()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(text) // an error: the reader is gone
}

// statusDocument returns the state of this epp, with a query's rows.
func (a *App) statusDocument(q *status.Query, now time.Time) *status.Document {
	p, c := a.pool, a.configuration.current()
	loads := p.loads()
	latest := &counts{at: now, flows: map[string]flowcontrol.FlowCounts{}, engines: map[string]answers{}, recent: map[string]uint64{}}
	latest.ended, latest.refused = p.controller.Ended()
	for _, f := range p.controller.FlowCounts() {
		latest.flows[f.Flow] = f
	}
	for i := range loads {
		latest.engines[loads[i].Address] = loads[i].answers()
	}
	d := &status.Document{
		Schema: status.Schema, At: now, Version: fmt.Sprint(version.Info()), Reasons: []status.Reason{}, Tiers: []status.Tier{}, Engines: []status.Engine{},
		Flows: []status.Flow{}, Rejections: []status.Rejection{},
	}
	for _, t := range p.controller.Tiers() {
		waits := p.controller.RecentWaits(t.Name)
		d.Tiers = append(d.Tiers, status.Tier{
			Name: t.Name, Waiting: t.Queued, Limit: t.Limit, InFlight: t.InFlight, Reserved: t.Reserved, Displaced: t.Displaced, Promotions: t.Promotions,
			Waits: waits.N, Median: waits.Median.Seconds(), P90: waits.P90.Seconds(), P99: waits.P99.Seconds(),
		})
	}
	earlier, window := a.rates.before(latest)
	d.WindowSeconds = window.Seconds()
	for i := range d.Tiers {
		name := d.Tiers[i].Name
		latest.recent[name] = latest.servedSince(earlier, name)
		d.Tiers[i].Served = perSecond(0, latest.recent[name], window)
	}
	d.Pool = a.poolStatus(&c, loads)
	d.Pool.Requests, d.Pool.Rejected = perSecond(earlier.ended, latest.ended, window), perSecond(earlier.refused, latest.refused, window)
	for i := range loads {
		d.Engines = append(d.Engines, p.engineStatus(&loads[i], now, earlier, window))
	}
	d.Flows, d.LeftOut.Flows = a.flowsStatus(q, earlier, latest)
	for _, r := range p.controller.Rejections() {
		d.Rejections = append(d.Rejections, rejectionStatus(&r))
	}
	recent := p.endings.until(p.outcomes(now, loads))
	d.Reasons, d.Notes = append(d.Reasons, a.reasons(d, recent, now)...), a.notes(recent)
	d.Healthy = len(d.Reasons) == 0
	d.Select(q)
	return d
}

// poolStatus returns the state of the pool.
func (a *App) poolStatus(c *config.Document, loads []load) status.Pool {
	s := a.pool.controller.State()
	p := status.Pool{
		Name: a.options.poolLabel(), Profile: c.Profile, Ready: a.readiness.ready(), Lacks: a.readiness.lacks(), Draining: s.Draining, Hashed: a.options.HashFlowKeys,
		Leads: a.readiness.have(leading), Leader: a.pool.leader(), Engines: len(loads), Waiting: s.Queued, WaitingFlows: s.Flows,
		QueueCapacity: int(c.FairRequestQueue.TotalCapacity), Stock: s.Stock, Elsewhere: a.pool.foreignTotal.Load(), Streams: a.pool.server.Streams(),
	}
	for i := range loads {
		p.ReadyEngines += one(loads[i].Ready)
	}
	if !s.Unbounded {
		p.LowerBound, p.UpperBound = &s.LowerBound, &s.UpperBound
	}
	return p
}

func rejectionStatus(r *flowcontrol.Rejected) status.Rejection {
	s := status.Rejection{At: r.Time, ID: r.ID, Flow: r.Flow, Tier: r.Tier, Model: r.Model, Outcome: r.Outcome, Text: r.Text}
	if r.Limit != nil {
		s.Limit, s.LimitValue, s.LimitText = r.Limit.Name, r.Limit.Value, r.Limit.Text()
		for _, h := range r.Limit.Holders {
			s.Holders = append(s.Holders, status.Holder(h))
		}
	}
	return s
}

func one(is bool) int {
	if is {
		return 1
	}
	return 0
}

// leader returns the name of the leading pod; "" without an election, or if unknown.
func (p *Pool) leader() string {
	if p.replication == nil || p.replication.elector == nil {
		return ""
	}
	return p.replication.elector.Leader()
}

// answers returns the numbers of the endpoint's answers.
func (l *load) answers() (n answers) {
	for _, of := range l.engine.Answers {
		n.all += of
	}
	n.failed, n.refused = l.engine.Answers[5], l.engine.Answers[4]
	return n
}

func (p *Pool) engineStatus(l *load, now time.Time, earlier *counts, window time.Duration) status.Engine {
	before, n := earlier.engines[l.Address], l.answers()
	e := status.Engine{
		Address: l.Address, Ready: l.Ready, Role: cmp.Or(l.Work.String(), "both"), InFlight: l.InFlight, Foreign: l.Foreign, Models: len(l.Models),
		Answers: perSecond(before.all, n.all, window), Failures: perSecond(before.failed, n.failed, window), Circuit: l.circuit(), Refused: perSecond(before.refused, n.refused, window),
		Service: l.engine.Service.Seconds(), Oldest: l.oldest(now).Seconds(),
	}
	if !l.Unbounded {
		bound := l.upper()
		e.Bound = &bound
		if bound > 0 {
			fill := float64(l.InFlight+l.Foreign) / bound
			e.Fill = &fill
		}
	}
	if m, known := p.engineOf(l.ID); known {
		e.Metrics = &status.EngineMetrics{
			Running: m.Running, Waiting: m.Lacking, Cache: float64(m.CacheUsed) / scheduling.Millionths, Age: now.Sub(m.At).Seconds(),
		}
	}
	return e
}

// flowsAsked bounds the additional flows whose state is requested: those that expire first, some of which may have no
// series of their own.
const flowsAsked = 200

// flowsStatus returns the states of flows for a query: the first by its order among flows with series of their own, and
// among all flows with waiting requests those that expire first. Under the lock it reads only these. Idle flows are
// rows only if the query has a part of their name. left is the number of omitted flows.
func (a *App) flowsStatus(q *status.Query, earlier, latest *counts) (rows []status.Flow, left int) {
	p, window := a.pool, latest.at.Sub(earlier.at)
	var names []string
	for name, f := range latest.flows {
		idle := f.Waiting == 0 && f.InFlight == 0 && f.Requests == earlier.flows[name].Requests
		if name != "" && q.MatchesFlow(name) && (!idle || q.Only+q.Flow != "") {
			names = append(names, name)
		}
	}
	if q.Only != "" && names == nil {
		names = []string{q.Only} // a flow without series, perhaps
	}
	order := func(name string) float64 {
		return orderOf(q.SortFlows, earlier.flows[name], latest.flows[name], window)
	}
	slices.SortFunc(names, func(x, y string) int { return cmp.Or(cmp.Compare(order(y), order(x)), cmp.Compare(x, y)) })
	left = max(0, len(names)-q.Flows)
	names = names[:len(names)-left]
	states := p.controller.FlowsOf(slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == flowcontrol.OtherFlows }))
	if q.Only == "" {
		states = append(states, p.controller.Flows(flowsAsked)...)
	}
	seen, shown := map[[3]string]bool{}, map[string]bool{}
	rows = []status.Flow{}
	for i := range states {
		s := &states[i]
		key := [3]string{s.Flow, s.Tier, s.Class}
		if seen[key] || !q.MatchesFlow(s.Flow) {
			continue
		}
		seen[key], shown[s.Flow] = true, s.Flow != flowcontrol.OtherFlows
		row := status.Flow{
			Flow: s.Flow, Tier: s.Tier, Class: s.Class, Waiting: s.Waiting, WaitingCost: s.WaitingCost, Since: s.Since, Why: s.Why, InFlight: s.InFlight,
			Weight: s.Weight,
		}
		if s.Waiting > 0 {
			row.Entitled = &s.Entitled
		}
		rows = append(rows, row)
	}
	for _, name := range names { // flows that neither wait nor run now, and the sum of the others
		if f := latest.flows[name]; !shown[name] {
			rows = append(rows, status.Flow{Flow: name, Tier: onlyTier(&f), Waiting: int(f.Waiting), InFlight: int(f.InFlight)})
		}
	}
	for i := range rows {
		rateFlow(&rows[i], earlier, latest, window)
	}
	return rows, left
}

// rateFlow adds the rates and the attained share of a flow with series.
func rateFlow(row *status.Flow, earlier, latest *counts, window time.Duration) {
	f, known := latest.flows[row.Flow]
	if !known || window <= 0 || row.Flow == flowcontrol.OtherFlows && row.Tier != "" { // a tenant with this name
		return
	}
	before := earlier.flows[row.Flow]
	requests, rejected := perSecond(before.Requests, f.Requests, window), perSecond(before.Rejections, f.Rejections, window)
	row.Requests, row.Rejected = &requests, &rejected
	if all := latest.recent[row.Tier]; all > 0 {
		share := float64(since(before.Served[row.Tier], f.Served[row.Tier])) / float64(all)
		row.Attained = &share
	}
}

// onlyTier returns the tier of a flow that has been in only one.
func onlyTier(f *flowcontrol.FlowCounts) string {
	if len(f.Served) == 1 && f.Flow != flowcontrol.OtherFlows {
		for tier := range f.Served {
			return tier
		}
	}
	return ""
}

// orderOf returns a flow's rank value in an order, from its counts. Flows that have waited longest are among those that
// expire first.
func orderOf(order string, earlier, latest flowcontrol.FlowCounts, window time.Duration) float64 {
	switch order {
	case "in-flight":
		return float64(latest.InFlight)
	case "rate":
		return perSecond(earlier.Requests, latest.Requests, window)
	case "rejections":
		return perSecond(earlier.Rejections, latest.Rejections, window)
	case "attained":
		var cost uint64
		for tier, n := range latest.Served {
			cost += n - min(n, earlier.Served[tier])
		}
		return float64(cost)
	case "flow":
		return 0
	}
	return float64(latest.Waiting)
}
