package request

import (
	"slices"
	"strings"
)

// Rules are a configuration compiled for reading requests. Immutable.
type Rules struct {
	cfg   Config
	names headerNames
	ranks tierRanks
	flow  []source
	// userIn has the sources of the tenant's user, if tenants have users.
	userIn []source
	// flowsOfModels is set if a request may have a model's flow, and modelFlows has the flows of the configured
	// targets.
	flowsOfModels      bool
	modelFlows         map[string]bool
	classHeader        slot
	classMeta          *source
	modelHeader        slot
	costHeader         slot
	inputHeader        slot // with the prompt's length in tokens
	requirementsHeader slot
	policyClass        policyClass
	hints              hints // the hints in bodies that count
	ring               *ring
	modelRings         map[string]*ring
	objectiveIn        []slot // of the objective headers, in order
	deadlines          []deadlineSource
	single             Slots // the headers that must not be repeated
	scalar             Slots // the headers of single whose value cannot be a list
	unread             Slots // the synonyms that the configuration does not name

	// For affinity: the hash of the seed, and the place of a session's name.
	seed        uint64
	session     sessionSource
	cheapPaths  map[string]bool
	models      map[string]*modelTargets
	otherModels *modelTargets          // nil: each model is its own target
	named       map[string]bool        // the models and targets that the configuration names
	objectives  map[string]int         // rank by objective
	tenants     map[string]tenantTiers // by tenant
	otherTenant int                    // highest rank of tenants without a policy
	explainers  map[string]bool        // tenants that may request records; nil: none
	roleIn      []source
	roles       map[string]tenantTiers // by role
	defaultRank int
}

// NewRules returns the rules of a valid configuration.
func NewRules(cfg *Config) *Rules {
	r := &Rules{
		cfg:        *cfg,
		names:      newHeaderNames(),
		ranks:      newTierRanks(cfg.Tiers),
		models:     make(map[string]*modelTargets, len(cfg.Models)),
		objectives: make(map[string]int, len(cfg.Objectives)),
		tenants:    make(map[string]tenantTiers, len(cfg.TenantPolicies)),
		modelFlows: make(map[string]bool),
		named:      make(map[string]bool),
	}
	r.cheapPaths = make(map[string]bool, len(cheapPaths)+len(cfg.PassOnPaths))
	for _, path := range slices.Concat(cheapPaths, cfg.PassOnPaths) {
		r.cheapPaths[path] = true
	}
	r.classHeader = r.optional(cfg.Criticality.Header)
	r.modelHeader = r.optional(cfg.TrustedHeaders.Model)
	r.costHeader = r.optional(cfg.TrustedHeaders.Cost)
	r.inputHeader = r.optional(cfg.TrustedHeaders.InputTokens)
	r.requirementsHeader = r.optional(cfg.TrustedHeaders.Requirements)
	for _, s := range []slot{r.modelHeader, r.costHeader, r.inputHeader, r.requirementsHeader} {
		if s != noSlot {
			r.names.control |= 1 << s
		}
	}
	for _, text := range cfg.flowKey() {
		s := r.source(text)
		r.flow = append(r.flow, s)
		r.flowsOfModels = r.flowsOfModels || s.kind == fromModel
	}
	for _, text := range cfg.userKey() {
		r.userIn = append(r.userIn, r.source(text))
	}
	for _, text := range cfg.RoleSources {
		r.roleIn = append(r.roleIn, r.source(text))
	}
	if m := cfg.Criticality.Metadata; m != "" {
		s := r.source(metadataSource + m)
		r.classMeta = &s
	}
	for _, name := range cfg.DeadlineHeaders {
		r.deadlines = append(r.deadlines, deadlineSource{slot: r.names.add(name), grpc: strings.EqualFold(name, "grpc-timeout")})
	}
	for _, name := range cfg.Criticality.ObjectiveHeaders {
		r.objectiveIn = append(r.objectiveIn, r.names.add(name))
	}
	r.compilePolicyClass(&cfg.PolicyClass)
	r.compileRings()
	r.compileAffinity()
	r.sortHeaders()
	r.leaveSynonyms()
	r.compileModels()
	r.compileTiers()
	return r
}

// compileModels needs only the names of tiers.
func (r *Rules) compileModels() {
	for i := range r.cfg.Models {
		m := &r.cfg.Models[i]
		r.models[m.Name] = newModelTargets(m.Targets, r.rank(m.Criticality, noRank))
		r.named[m.Name] = true
		for _, target := range m.Targets {
			r.named[target.Name] = true
			r.modelFlows[modelFlow(m.Name, target.Name)] = true
		}
	}
	if len(r.cfg.OtherTargets) > 0 {
		r.otherModels = newModelTargets(r.cfg.OtherTargets, noRank)
		for _, target := range r.cfg.OtherTargets {
			r.named[target.Name] = true
		}
	}
}

// compileTiers needs the models, since no tenant can claim a model's flow.
func (r *Rules) compileTiers() {
	for _, o := range r.cfg.Objectives {
		r.objectives[o.Name] = r.ranks.byPriority(o.Priority)
	}
	r.otherTenant = r.rank(r.cfg.TenantPolicies[OtherTenants].MaxClass, 0)
	for tenant, p := range r.cfg.TenantPolicies {
		tenant = r.knownAs(tenant)
		tiers := r.tiersOf(p.Class, p.MaxClass)
		tiers.role, tiers.byRole = p.Role, p.Class == "" && p.MaxClass == ""
		r.tenants[tenant] = tiers
	}
	for _, tenant := range r.cfg.Explain {
		if r.explainers == nil {
			r.explainers = make(map[string]bool, len(r.cfg.Explain))
		}
		r.explainers[r.knownAs(tenant)] = true
	}
	for name, p := range r.cfg.Roles {
		if r.roles == nil {
			r.roles = make(map[string]tenantTiers, len(r.cfg.Roles))
		}
		r.roles[name] = r.tiersOf(p.Class, p.MaxClass)
	}
	r.defaultRank = r.rank(r.cfg.Criticality.Default, 0)
}

// knownAs returns the name of a configured tenant in requests.
func (r *Rules) knownAs(tenant string) string {
	switch {
	case tenant == OtherTenants || tenant == Anonymous:
		return tenant
	case r.cfg.HashFlowKeys:
		return HashedFlowName(tenant)
	}
	return r.tenantName(tenant)
}

// mayExplain reports whether a tenant, or a request without one, may request the record of its decision.
func (r *Rules) mayExplain(tenant string) bool {
	if r.explainers == nil {
		return false
	}
	if tenant == "" {
		tenant = Anonymous
	}
	return r.explainers[tenant] || r.explainers[OtherTenants]
}

// tiersOf returns a policy by rank.
func (r *Rules) tiersOf(class, maxClass string) tenantTiers {
	own, highest := r.rank(class, noRank), r.otherTenant
	if own != noRank {
		highest = min(highest, own)
	}
	return tenantTiers{own: own, highest: r.rank(maxClass, highest)}
}

// rank returns the rank of a tier's name or criticality, or otherwise for an unknown name.
func (r *Rules) rank(name string, otherwise int) int {
	if rank, ok := r.ranks.byName(name); ok {
		return rank
	}
	return otherwise
}

// optional returns the slot of a header, or noSlot if its name is empty.
func (r *Rules) optional(header string) slot {
	if header == "" {
		return noSlot
	}
	return r.names.add(header)
}

// source parses a valid source.
func (r *Rules) source(text string) source {
	s, bad := parseSource(text)
	if bad != nil {
		panic(bad) // Validate has accepted it
	}
	if s.kind == fromHeader {
		s.slot = r.names.add(s.name)
	}
	return s
}

// Names reports whether the configuration names a model, or a target of that name.
func (r *Rules) Names(model string) bool { return r.named[model] }
