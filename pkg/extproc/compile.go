package extproc

import (
	"slices"
	"strings"

	"github.com/weir-epp/weir/pkg/flowcontrol"
)

// compiled is a configuration in the form that streams read. Immutable, except for the cache of replies.
type compiled struct {
	Config
	names headerNames
	ranks tierRanks
	flow  []source
	// flowsOfModels is set if a model's flow may be a request's, and modelFlows has those of the configured targets.
	flowsOfModels bool
	modelFlows    map[string]bool
	classHeader   slot
	classMeta     *source
	modelHeader   slot
	costHeader    slot
	inputHeader   slot // with the prompt's length in tokens
	policyClass   policyClass
	objectiveIn   []slot // of the headers that may name an objective, in order
	deadlines     []deadlineSource
	single        uint64 // has a bit for each header that a request may have only once
	scalar        uint64 // has a bit for each of those whose value cannot be a list
	unread        uint64 // has a bit for each synonym that the configuration does not name
	cheapPaths    map[string]bool
	models        map[string]*modelTargets
	otherModels   *modelTargets          // nil: each is its own target
	named         map[string]bool        // the models and targets that the configuration names, so that they are not unknown
	objectives    map[string]int         // rank by objective
	tenants       map[string]tenantTiers // by tenant
	otherTenant   int                    // highest rank of tenants without a policy
	defaultRank   int
	rejections    rejections
	replies       replyCache
}

// noSlot is the slot of headers that are not configured. No request has a value there.
const noSlot slot = maxSlots - 1

// compile compiles a valid configuration.
func compile(cfg *Config) *compiled {
	c := &compiled{
		Config:     *cfg,
		names:      newHeaderNames(),
		ranks:      newTierRanks(cfg.Tiers),
		models:     make(map[string]*modelTargets, len(cfg.Models)),
		objectives: make(map[string]int, len(cfg.Objectives)),
		tenants:    make(map[string]tenantTiers, len(cfg.TenantPolicies)),
		modelFlows: make(map[string]bool),
		named:      make(map[string]bool),
		rejections: newRejections(cfg.Responses),
	}
	c.cheapPaths = make(map[string]bool, len(cheapPaths)+len(cfg.PassOnPaths))
	for _, path := range slices.Concat(cheapPaths, cfg.PassOnPaths) {
		c.cheapPaths[path] = true
	}
	c.classHeader = c.optional(cfg.Criticality.Header)
	c.modelHeader = c.optional(cfg.TrustedHeaders.Model)
	c.costHeader = c.optional(cfg.TrustedHeaders.Cost)
	c.inputHeader = c.optional(cfg.TrustedHeaders.InputTokens)
	for _, s := range []slot{c.modelHeader, c.costHeader, c.inputHeader} {
		if s != noSlot {
			c.names.control |= 1 << s
		}
	}
	for _, text := range cfg.FlowKey {
		s := c.source(text)
		c.flow = append(c.flow, s)
		c.flowsOfModels = c.flowsOfModels || s.kind == fromModel
	}
	if m := cfg.Criticality.Metadata; m != "" {
		s := c.source(metadataSource + m)
		c.classMeta = &s
	}
	for _, name := range cfg.DeadlineHeaders {
		c.deadlines = append(c.deadlines, deadlineSource{slot: c.names.add(name), grpc: strings.EqualFold(name, "grpc-timeout")})
	}
	for _, name := range cfg.Criticality.ObjectiveHeaders {
		c.objectiveIn = append(c.objectiveIn, c.names.add(name))
	}
	c.compilePolicyClass(&cfg.PolicyClass)
	c.sortHeaders()
	for i := range cfg.Models {
		m := &cfg.Models[i]
		c.models[m.Name] = newModelTargets(m.Targets, c.rank(m.Criticality, noRank))
		c.named[m.Name] = true
		for _, target := range m.Targets {
			c.named[target.Name] = true
			c.modelFlows[modelFlow(m.Name, target.Name)] = true
		}
	}
	if len(cfg.OtherTargets) > 0 {
		c.otherModels = newModelTargets(cfg.OtherTargets, noRank)
		for _, target := range cfg.OtherTargets {
			c.named[target.Name] = true
		}
	}
	for _, o := range cfg.Objectives {
		c.objectives[o.Name] = c.ranks.byPriority(o.Priority)
	}
	c.otherTenant = c.rank(cfg.TenantPolicies[OtherTenants].MaxClass, 0)
	for tenant, p := range cfg.TenantPolicies {
		switch {
		case tenant == OtherTenants || tenant == anonymous:
		case cfg.HashFlowKeys:
			tenant = HashedFlowName(tenant)
		default:
			tenant = c.tenantName(tenant)
		}
		own := c.rank(p.Class, noRank)
		highest := c.otherTenant
		if own != noRank {
			highest = min(highest, own)
		}
		c.tenants[tenant] = tenantTiers{own: own, highest: c.rank(p.MaxClass, highest)}
	}
	c.defaultRank = c.rank(cfg.Criticality.Default, 0)
	return c
}

// rank returns the rank of a tier's name or criticality, or otherwise if there is none of that name.
func (c *compiled) rank(name string, otherwise int) int {
	if r, ok := c.ranks.byName(name); ok {
		return r
	}
	return otherwise
}

// optional returns the slot of a header, or noSlot if its name is empty.
func (c *compiled) optional(header string) slot {
	if header == "" {
		return noSlot
	}
	return c.names.add(header)
}

// source parses a valid source.
func (c *compiled) source(text string) source {
	s, bad := parseSource(text)
	if bad != nil {
		panic(bad) // Validate has accepted it
	}
	if s.kind == fromHeader {
		s.slot = c.names.add(s.name)
	}
	return s
}

// readsBody reports whether the usage is read from response bodies.
func (c *compiled) readsBody() bool {
	return c.Usage == UsageBody || c.Usage == UsageAuto && c.Cost == CostTokens
}

// status returns the HTTP status of an outcome.
func (c *compiled) status(o flowcontrol.Outcome) int { return c.rejections.status[o] }
