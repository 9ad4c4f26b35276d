package simulate

import (
	"strings"
	"time"

	"github.com/weir-epp/weir/internal/config"
	"github.com/weir-epp/weir/internal/modelsim/engine"
)

// Workload is the document of a synthetic workload.
type Workload struct {
	// APIVersion and Kind are "weir.dev/v1alpha1" and "Workload".
	APIVersion string `yaml:"apiVersion"`
	Kind       string `yaml:"kind"`
	// Duration is the time in which requests arrive; their answers may take longer.
	Duration config.Duration `yaml:"duration" default:"0s"`
	// BlockTokens is the number of tokens in a block of the engines' KV caches; 0: DefaultBlock.
	BlockTokens int64 `yaml:"blockTokens" default:"0"`
	// Engines are the engines; none: 8 engines of the routing figures.
	Engines []EngineGroup `yaml:"engines" default:"[]"`
	Clients []Client      `yaml:"clients" default:"[]"`
}

// EngineGroup describes equal engines. Missing values are as in the routing figures.
type EngineGroup struct {
	Count                  int64           `yaml:"count" default:"1"`
	Slots                  int64           `yaml:"slots" default:"64"`
	KVTokens               int64           `yaml:"kvTokens" default:"600000"`
	TokenBudget            int64           `yaml:"tokenBudget" default:"8192"`
	PrefillTokensPerSecond int64           `yaml:"prefillTokensPerSecond" default:"15928"`
	StepTime               config.Duration `yaml:"stepTime" default:"12ms"`
	StepTimePerSequence    config.Duration `yaml:"stepTimePerSequence" default:"60us"`
}

// Client describes flows of one kind.
type Client struct {
	// Flow is the key of the flow; with a Count above 1 the flows are Flow-1, Flow-2 and so on. Several clients may be phases of
	// the same flow, one after the other.
	Flow  string `yaml:"flow"`
	Count int64  `yaml:"count" default:"1"`
	// Tier is the name of the tier; empty: the configuration's default.
	Tier string `yaml:"tier"`
	// Class is the name of the policy class; empty: the configuration's first.
	Class string `yaml:"class"`
	// Tenant is the identity whose policy and quota apply; empty: each flow's. Role is its role, as found by
	// flows.role, and User its user, for configurations with two levels of flows.
	Tenant string `yaml:"tenant"`
	Role   string `yaml:"role"`
	User   string `yaml:"user"`
	// Weight is each flow's weight, which overrides the configuration's; 0: none.
	Weight config.Decimal `yaml:"weight" default:"0"`
	// Rate is the mean number of requests per second of each flow while it sends.
	Rate config.Decimal `yaml:"rate" default:"0"`
	// InFlight, instead of Rate, is the number of requests that each flow keeps in flight. It sends the next when one
	// is answered, or a second after one is rejected.
	InFlight int64 `yaml:"inFlight" default:"0"`
	// Arrivals is poisson or even. Burst is the number of requests that arrive together.
	Arrivals string `yaml:"arrivals" default:"poisson"`
	Burst    int64  `yaml:"burst" default:"1"`
	// From and To bound the time in which it sends; To 0: to the end. On and Off, if given, alternate within that time.
	From config.Duration `yaml:"from" default:"0s"`
	To   config.Duration `yaml:"to" default:"0s"`
	On   config.Duration `yaml:"on" default:"0s"`
	Off  config.Duration `yaml:"off" default:"0s"`
	// Requests is the largest number of requests of each flow; 0: any number.
	Requests int64 `yaml:"requests" default:"0"`
	// Prompt is the length of a request's own part of the prompt, after the shared Prefix. Output is the length of the
	// answer. MaxOutput is the limit stated by requests; 0: none.
	Prompt    Length `yaml:"prompt"`
	Output    Length `yaml:"output"`
	MaxOutput int64  `yaml:"maxOutput" default:"0"`
	Prefix    Prefix `yaml:"prefix"`
}

// Prefix is the shared part of prompts: each begins with the text of one of several groups. Without Tokens they share
// nothing.
type Prefix struct {
	// Name tells prefixes apart: clients with the same name share its groups. Empty: each flow has its own.
	Name string `yaml:"name"`
	// Groups is the number of groups, and Tokens the length of each group's text.
	Groups int64 `yaml:"groups" default:"1"`
	Tokens int64 `yaml:"tokens" default:"0"`
	// Zipf is the exponent of the groups' popularity, by number; 0: all are equally popular.
	Zipf config.Decimal `yaml:"zipf" default:"0"`
}

// The constant values in a document.
const (
	WorkloadVersion = "weir.dev/v1alpha1"
	WorkloadKind    = "Workload"

	Poisson = "poisson"
	Even    = "even"
)

// The limits of a workload.
const (
	mostEngines  = 4096
	mostFlowsOf  = 10_000 // in one entry of clients
	mostGroups   = 1_000_000
	mostRate     = 100_000 // per second
	mostInFlight = 100_000

	// blockBits are the bits of a block's number in its prompt, and mostBlocks is the number of blocks of one prompt.
	blockBits  = 20
	mostBlocks = 1 << 16
)

// DecodeWorkload decodes and validates a document. The error lists all problems, by path and line.
func DecodeWorkload(text []byte) (Workload, error) {
	w := Workload{}
	lines, problems := config.DecodeInto(text, &w)
	w.check(&problems)
	return w, problems.Located(lines)
}

// check adds a problem for each value out of range.
func (w *Workload) check(ps *config.Problems) {
	oneOf := func(path, value, want string) {
		if value != want {
			ps.Add(path, value, "must be %s", want)
		}
	}
	oneOf("apiVersion", w.APIVersion, WorkloadVersion)
	oneOf("kind", w.Kind, WorkloadKind)
	if w.Duration <= 0 {
		ps.Add("duration", w.Duration, "must be above 0s")
	}
	config.Within(ps, "blockTokens", w.BlockTokens, 0, 1<<16)
	engines := int64(0)
	for i := range w.Engines {
		w.Engines[i].check(ps, at("engines", i))
		engines += w.Engines[i].Count
	}
	if engines > mostEngines {
		ps.Add("engines", engines, "must be at most %d together", mostEngines)
	}
	if len(w.Clients) == 0 {
		ps.Add("clients", "none", "must have at least one")
	}
	for i := range w.Clients {
		path := at("clients", i)
		c := &w.Clients[i]
		c.check(ps, path, w.Duration)
		c.checkBlocks(ps, path, max(1, w.Block()))
		for j := range w.Clients[:i] {
			if other := &w.Clients[j]; c.Flow != "" && c.Flow == other.Flow && !c.follows(other, w.Duration) {
				ps.Add(path+".flow", c.Flow, "is the flow of %s already, at the same time or with another count, tier or weight", at("clients", j))
				break
			}
		}
	}
}

func (g *EngineGroup) check(ps *config.Problems, path string) {
	config.Within(ps, path+".count", g.Count, 1, mostEngines)
	config.Within(ps, path+".slots", g.Slots, 1, 1<<20)
	config.Within(ps, path+".kvTokens", g.KVTokens, 1, 1<<40)
	config.Within(ps, path+".tokenBudget", g.TokenBudget, 1, 1<<30)
	config.Within(ps, path+".prefillTokensPerSecond", g.PrefillTokensPerSecond, 1, 1_000_000_000)
	config.Within(ps, path+".stepTime", g.StepTime, config.Duration(time.Microsecond), config.Duration(time.Minute))
	config.Within(ps, path+".stepTimePerSequence", g.StepTimePerSequence, 0, config.Duration(time.Minute))
}

func (c *Client) check(ps *config.Problems, path string, length config.Duration) {
	if c.Flow == "" {
		ps.Add(path+".flow", c.Flow, "must be a name")
	}
	config.Within(ps, path+".count", c.Count, 1, mostFlowsOf)
	config.Within(ps, path+".inFlight", c.InFlight, 0, mostInFlight)
	if loop := c.InFlight > 0; !loop && (c.Rate <= 0 || c.Rate > mostRate*config.One) {
		ps.Add(path+".rate", c.Rate, "must be above 0 and at most %d", mostRate)
	} else if loop && (c.Rate != 0 || c.Burst != 1 || c.On != 0) {
		ps.Add(path+".inFlight", c.InFlight, "must be without rate, burst, on and off")
	}
	if c.Weight < 0 {
		ps.Add(path+".weight", c.Weight, "must be above 0")
	}
	if c.Arrivals != Poisson && c.Arrivals != Even {
		ps.Add(path+".arrivals", c.Arrivals, "must be %s or %s", Poisson, Even)
	}
	config.Within(ps, path+".burst", c.Burst, 1, 1_000_000)
	config.Within(ps, path+".from", c.From, 0, max(0, length))
	if c.To != 0 && (c.To <= c.From || c.To > length) {
		ps.Add(path+".to", c.To, "must be above from (%v) and at most duration (%v)", c.From, length)
	}
	if c.On < 0 {
		ps.Add(path+".on", c.On, "must be at least 0s")
	}
	if c.Off < 0 || c.Off > 0 && c.On <= 0 {
		ps.Add(path+".off", c.Off, "must be at least 0s, and needs an on")
	}
	config.Within(ps, path+".requests", c.Requests, 0, 1<<40)
	for _, l := range []struct {
		name   string
		length Length
	}{{".prompt", c.Prompt}, {".output", c.Output}} {
		if !l.length.given() {
			ps.Add(path+l.name, "none", "%v", errLength)
		}
	}
	config.Within(ps, path+".maxOutput", c.MaxOutput, 0, MaxTokens)
	if p := c.Prefix; p != (Prefix{Groups: 1}) {
		config.Within(ps, path+".prefix.groups", p.Groups, 1, mostGroups)
		config.Within(ps, path+".prefix.tokens", p.Tokens, 1, MaxTokens)
		if p.Zipf < 0 || p.Zipf > 10*config.One {
			ps.Add(path+".prefix.zipf", p.Zipf, "must be from 0 to 10")
		}
	}
}

// follows reports whether c and other may be phases of the same flows.
func (c *Client) follows(other *Client, length config.Duration) bool {
	end := func(c *Client) config.Duration {
		if c.To == 0 {
			return length
		}
		return c.To
	}
	return (end(c) <= other.From || end(other) <= c.From) && c.Count == other.Count && c.Tier == other.Tier && c.Weight == other.Weight
}

// checkBlocks refuses prompts of too many blocks, which would make a workload slow and large.
func (c *Client) checkBlocks(ps *config.Problems, path string, block int) {
	own, shared := int64(c.Prompt.most()), c.Prefix.Tokens
	if own > MaxTokens || shared < 0 || shared > MaxTokens {
		return // said already
	}
	if n := (own + shared) / int64(block); n > mostBlocks {
		ps.Add(path+".prompt", own, "with %s.prefix.tokens (%d) it may have %d blocks of blockTokens (%d), must have at most %d",
			path, shared, n, block, mostBlocks)
	}
}

// Block returns the number of tokens in a block.
func (w *Workload) Block() int {
	if w.BlockTokens == 0 {
		return DefaultBlock
	}
	return int(w.BlockTokens)
}

// Pool returns the engines.
func (w *Workload) Pool() []Engines {
	if len(w.Engines) == 0 {
		return []Engines{DefaultEngines(8, w.Block())}
	}
	var pool []Engines
	for _, g := range w.Engines {
		pool = append(pool, Engines{int(g.Count), engine.Config{
			Slots: int(g.Slots), TokenBudget: int(g.TokenBudget), BlockSize: w.Block(), Blocks: max(1, int(g.KVTokens)/w.Block()),
			Step: engine.StepTime{
				Base: g.StepTime.Std(), PerSequence: g.StepTimePerSequence.Std(),
				PerToken: time.Second / time.Duration(g.PrefillTokensPerSecond),
			},
			Seed: 1,
		}})
	}
	return pool
}

// Weights returns the clients' weights, by flow.
func (w *Workload) Weights() map[string]config.Decimal {
	weights := map[string]config.Decimal{}
	for i := range w.Clients {
		c := &w.Clients[i]
		for n := range int(c.Count) {
			if c.Weight > 0 {
				weights[c.name(n)] = c.Weight
			}
		}
	}
	return weights
}

func at(list string, i int) string { return list + "[" + itoa(i) + "]" }

// CheckTiers returns an error if a client names a tier that the configuration lacks.
func (w *Workload) CheckTiers(d *config.Document) error {
	var ps config.Problems
	for i := range w.Clients {
		known := w.Clients[i].Tier == ""
		names := make([]string, len(d.Tiers))
		for j := range d.Tiers {
			names[j] = d.Tiers[j].Name
			known = known || names[j] == w.Clients[i].Tier
		}
		if !known {
			ps.Add(at("clients", i)+".tier", w.Clients[i].Tier, "must be one of the configuration's tiers: %s", strings.Join(names, ", "))
		}
	}
	return ps.Located(nil)
}

// CheckOpen returns an error if a request depends on the end of another one.
func (w *Workload) CheckOpen() error {
	var ps config.Problems
	for i := range w.Clients {
		if n := w.Clients[i].InFlight; n > 0 {
			ps.Add(at("clients", i)+".inFlight", n, "must be 0 here: requests do not follow answers")
		}
	}
	return ps.Located(nil)
}

// CheckService returns an error if the workload is too short or too large for ServiceFigures.
func (w *Workload) CheckService() error {
	var ps config.Problems
	flows := int64(0)
	for i := range w.Clients {
		flows += w.Clients[i].Count
	}
	if flows > mostServiceFlows {
		ps.Add("clients", flows, "must be at most %d flows together", mostServiceFlows)
	}
	config.Within(&ps, "duration", w.Duration, config.Duration((serviceWarmUp+serviceWindow)*time.Second), config.Duration(mostServiceSeconds*time.Second))
	return ps.Located(nil)
}
