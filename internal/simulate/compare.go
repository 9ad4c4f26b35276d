package simulate

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/recording"
	"github.com/weir-epp/weir/pkg/scheduling"
)

// ComparisonSchema is the version of Comparison's JSON. It rises with an incompatible change.
const ComparisonSchema = 1

// Comparison has the changes for a recording's flows under other configurations.
type Comparison struct {
	Schema    int              `json:"schema"`
	Recording RecordingFigures `json:"recording"`
	// Error is the distance of a simulation of the recorded configuration from the recording; nil if nothing was
	// simulated.
	Error *PredictionError `json:"error,omitempty"`
	// Configurations has at least one: without others, the recorded one.
	Configurations []Outlook `json:"configurations"`
	Notes          []string  `json:"notes"`
}

// RecordingFigures has the figures of a recording.
type RecordingFigures struct {
	From     time.Time `json:"from"`
	To       time.Time `json:"to"`
	Requests int       `json:"requests"`
	// Grants is its number of grants. Its replay has reproduced all of them.
	Grants int `json:"grants"`
	// RefusedEarly is the number of requests refused before the queue. They are not among Requests.
	RefusedEarly int `json:"refusedEarly"`
	// Unit is the unit of work: tokens or requests.
	Unit string `json:"unit"`
}

// PredictionError is the largest error of a flow's share, in percentage points, and of a flow's median wait, in
// percent, each with the flow's name. A wait below 10 ms counts as 10 ms. Flows with fewer than 20 grants count only if
// there are no others.
type PredictionError struct {
	SharePoints float64 `json:"sharePoints"`
	ShareFlow   string  `json:"shareFlow"`
	WaitPercent float64 `json:"waitPercent"`
	WaitFlow    string  `json:"waitFlow"`
}

const (
	leastWait   = 10 * time.Millisecond
	leastGrants = 20
)

// Outlook has the changes under one configuration.
type Outlook struct {
	Name string `json:"name"`
	// AsRecorded is true for the recorded configuration: its figures are the recording's own, not a simulation's.
	AsRecorded bool `json:"asRecorded"`
	// Similar is the number of requests that took a similar request's time at their engine.
	Similar int `json:"similar"`
	// Flows are the flows with the largest changes, then the others as one. All is all flows together.
	Flows []FlowChange `json:"flows"`
	All   FlowChange   `json:"all"`
}

// FlowChange has the changes for one flow.
type FlowChange struct {
	Flow string `json:"flow"`
	// Clients is the assumed behavior of its clients: open, closed or mixed; "" for several flows.
	Clients string      `json:"clients,omitempty"`
	Before  FlowFigures `json:"before"`
	After   FlowFigures `json:"after"`
	// ErrorPoints and ErrorPercent are the errors of its share and its median wait, as in PredictionError.
	ErrorPoints  float64 `json:"errorPoints"`
	ErrorPercent float64 `json:"errorPercent"`
}

// FlowFigures are a flow's figures within the time of the recording. Waits are in seconds, of granted requests.
type FlowFigures struct {
	Requests     int     `json:"requests"`
	Granted      int     `json:"granted"`
	Rejected     int     `json:"rejected"`
	Left         int     `json:"left"` // their clients left before a grant
	SharePercent float64 `json:"sharePercent"`
	WaitP50      float64 `json:"waitP50Seconds"`
	WaitP95      float64 `json:"waitP95Seconds"`
}

// CompareOptions are the options of Compare.
type CompareOptions struct {
	Configs  []RecordedOptions // Name, Config and Machine of each
	Clients  Clients
	Seed     uint64
	Flows    int // the number of flows shown one by one
	Progress func(part float64)
}

// comparing is the state of a running comparison.
type comparing struct {
	*CompareOptions
	before    *window
	simulated *window // the recorded configuration; nil if nothing was simulated
	clients   map[string]string
	part      int // number of configurations done
}

// Compare runs a recording's arrivals with other configurations. Without any, it returns the recording's figures.
func Compare(o *CompareOptions, h *recording.History) (*Comparison, error) {
	c := &comparing{CompareOptions: o, before: happened(h), clients: clientsOf(h, o.Clients)}
	out := &Comparison{Schema: ComparisonSchema, Configurations: []Outlook{}, Notes: []string{}}
	out.Recording = RecordingFigures{
		From: h.From, To: h.To, Requests: len(h.Visits), Grants: h.Grants, RefusedEarly: h.Refused, Unit: unitOf(h),
	}
	runs, similar, simulated := make([]*recorded, len(o.Configs)), 0.0, false
	for i, one := range o.Configs {
		r, err := c.run(one, h)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", one.Name, err)
		}
		runs[i] = r
		similar = max(similar, float64(r.service.others)/float64(max(1, r.service.asked)))
		simulated = simulated || !r.isRecorded()
		out.Notes = append(out.Notes, r.missing(one.Name)...)
	}
	if simulated {
		r, err := c.run(RecordedOptions{Similar: similar}, h)
		if err != nil {
			return nil, err
		}
		c.simulated = r.window
		out.Error = c.error()
	}
	for i, r := range runs {
		out.Configurations = append(out.Configurations, c.outlook(o.Configs[i].Name, r))
	}
	if len(runs) == 0 {
		out.Configurations = append(out.Configurations, c.outlook(Recorded, nil))
	}
	out.Notes = append(out.Notes, c.notes(h, out)...)
	return out, nil
}

// run simulates a configuration, unless it is the recorded one and no simulation is needed.
func (c *comparing) run(one RecordedOptions, h *recording.History) (*recorded, error) {
	one.Clients, one.Seed = c.Clients, c.Seed
	if c.Progress != nil {
		one.Progress = func(part float64) { c.Progress((float64(c.part) + part) / float64(len(c.Configs)+1)) }
	}
	r, err := newRecorded(&one, h)
	if err == nil && (one.Config == nil || !r.isRecorded()) {
		err = r.run()
	}
	c.part++
	return r, err
}

// isRecorded reports whether the configuration decides exactly like the recorded one.
func (r *recorded) isRecorded() bool {
	if len(r.history.Configs) > 0 || !r.charged && unitOf(r.history) == unitTokens {
		return false
	}
	if !r.rated && slices.ContainsFunc(r.history.Visits, func(v *recording.Visit) bool { return v.Placed != nil && v.Placed.Ratings != nil }) {
		return false
	}
	text := func(d dispatch.Config, s scheduling.Config) []byte {
		text, err := json.Marshal([]any{d, s})
		if err != nil {
			panic(err) // JSON can encode all of it
		}
		return text
	}
	return bytes.Equal(text(r.machine.Config(), r.scheduler.Config()), text(r.history.Config, r.history.Scheduling))
}

// The units of work.
const (
	unitTokens   = "tokens"
	unitRequests = "requests"
)

// unitOf returns the unit of a recording's costs.
func unitOf(h *recording.History) string {
	if slices.ContainsFunc(h.Visits, func(v *recording.Visit) bool { return chargedFor(v) > 1 }) {
		return unitTokens
	}
	return unitRequests
}

// error returns the error of the prediction.
func (c *comparing) error() *PredictionError {
	e := &PredictionError{}
	least := leastGrants
	if !slices.ContainsFunc(c.flows(), func(flow string) bool { return c.before.flows[flow].granted >= leastGrants }) {
		least = 0
	}
	for _, flow := range c.flows() {
		before := c.before.flows[flow]
		if before.granted < least {
			continue
		}
		points, percent := c.errorOf(before, c.simulated.flows[flow])
		if points > e.SharePoints || e.ShareFlow == "" {
			e.SharePoints, e.ShareFlow = points, flow
		}
		if percent > e.WaitPercent || e.WaitFlow == "" {
			e.WaitPercent, e.WaitFlow = percent, flow
		}
	}
	return e
}

// flows returns the names of all flows, in order.
func (c *comparing) flows() []string {
	flows := make([]string, 0, len(c.before.flows))
	for flow := range c.before.flows {
		flows = append(flows, flow)
	}
	slices.Sort(flows)
	return flows
}

func (c *comparing) errorOf(before, simulated *windowed) (points, percent float64) {
	if c.simulated == nil {
		return 0, 0
	}
	b, s := before.figures(c.before.work()), simulated.figures(c.simulated.work())
	return math.Abs(s.SharePercent - b.SharePercent), 100 * math.Abs(s.WaitP50-b.WaitP50) / max(b.WaitP50, leastWait.Seconds())
}

// outlook returns the changes; r is nil for the recorded configuration.
func (c *comparing) outlook(name string, r *recorded) Outlook {
	out, after := Outlook{Name: name, AsRecorded: r == nil || r.isRecorded()}, c.before
	if !out.AsRecorded {
		after, out.Similar = r.window, r.service.others
	}
	change := func(flow string, before, simulated, then *windowed) FlowChange {
		f := FlowChange{Flow: flow, Before: before.figures(c.before.work()), After: then.figures(after.work()), Clients: c.clients[flow]}
		if simulated != nil && !out.AsRecorded {
			f.ErrorPoints, f.ErrorPercent = c.errorOf(before, simulated)
		}
		return f
	}
	simulated := func(flow string) *windowed {
		if c.simulated == nil {
			return nil
		}
		return c.simulated.flows[flow]
	}
	var all []FlowChange
	for _, flow := range c.flows() {
		all = append(all, change(flow, c.before.flows[flow], simulated(flow), after.flows[flow]))
	}
	slices.SortStableFunc(all, func(a, b FlowChange) int {
		return cmp.Or(cmp.Compare(b.shareChange(), a.shareChange()), cmp.Compare(b.waitChange(), a.waitChange()),
			cmp.Compare(b.Before.Requests, a.Before.Requests))
	})
	sum := func(of []FlowChange, name string) FlowChange {
		var before, then windowed
		var like *windowed
		if c.simulated != nil {
			like = &windowed{}
		}
		for i := range of {
			before.add(c.before.flows[of[i].Flow])
			then.add(after.flows[of[i].Flow])
			if like != nil {
				like.add(simulated(of[i].Flow))
			}
		}
		return change(name, &before, like, &then)
	}
	out.All = sum(all, "all")
	out.Flows = all
	if len(all) > c.Flows {
		out.Flows = append(slices.Clone(all[:c.Flows]), sum(all[c.Flows:], "other"))
	}
	return out
}

// shareChange returns the change of the share in tenths of a percentage point, as shown.
func (f *FlowChange) shareChange() int {
	return int(math.Abs(math.Round(10*(f.After.SharePercent-f.Before.SharePercent))) + 0.5)
}

// waitChange returns the change of the median wait in seconds.
func (f *FlowChange) waitChange() float64 { return math.Abs(f.After.WaitP50 - f.Before.WaitP50) }

// figures returns a flow's figures; work is the whole for its share.
func (t *windowed) figures(work int64) FlowFigures {
	f := FlowFigures{
		Requests: t.requests, Granted: t.granted, Rejected: t.rejected, Left: t.left,
		WaitP50: t.wait.quantile(500).Seconds(), WaitP95: t.wait.quantile(950).Seconds(),
	}
	if work > 0 {
		f.SharePercent = 100 * float64(t.work) / float64(work)
	}
	return f
}
