package config

// Flows configures the identities and the shares of flows.
type Flows struct {
	// Sources of a flow's identity, of which the first that is present counts: header:NAME, metadata:NAMESPACE/PATH,
	// attribute:NAME, or model (the model and its target). By naming a header here the operator asserts that the
	// gateway sets or strips it. From 1 to 16 sources.
	//
	// Default: The proposal's; it needs no identity, which only a gateway can vouch for.
	Key []string `yaml:"key" default:"[model]" sets:"streams.FlowKey" reload:"refused" page:"first"`
	// Levels of flows, in place of key, weights and capacities: one, which is the same as these, or two, of which the first is
	// that of tenants and the second that of the users of each tenant. Users share what their tenant gets, so a tenant gains
	// nothing by having many. Two levels need another discipline than none. Their number and their keys cannot change at
	// run time.
	//
	// Default: One level is the common case, and has keys of its own above and below.
	Levels []Level `yaml:"levels,omitempty" default:"[]" sets:"controller.Queue.ByLevel controller.Levels streams.Levels"`
	// Sources of a tenant's role (roles), of which the first that is present counts: header:NAME,
	// metadata:NAMESPACE/PATH (such as a claim of a JWT) or attribute:NAME. By naming a header here the operator
	// asserts that the gateway sets or strips it; a request that has it twice is refused. At most 16 sources.
	//
	// Default: A role is worth something, so it is taken from a place only where the operator names it.
	Role []string `yaml:"role" default:"[]" sets:"streams.RoleSources"`
	// Role of requests without one, or with one that roles does not list; empty: none.
	//
	// Default: A tenant without a role has weight 1 and no quota, as without roles.
	DefaultRole string `yaml:"defaultRole" default:"''" sets:"streams.DefaultRole"`
	// Weight of a flow by its identity; other flows have that of their role, or 1. From 0.001 to 1000000. Identities that come from the source
	// model are MODEL/TARGET, such as "m/m" for a model without targets.
	//
	// Default: Flows are equal until the operator sets weights.
	Weights map[string]Decimal `yaml:"weights" default:"{}" sets:"controller.Queue.Weights" page:"first"`
	// flowCapacity of a flow by its identity, as in weights. From 1 to totalCapacity.
	//
	// Default: Every flow gets flowCapacity until the operator sets another.
	Capacities map[string]int64 `yaml:"capacities" default:"{}" sets:"controller.Queue.FlowCapacities"`
	// Flows of models that neither models nor the list of an endpoint names, if the source is model: own (a flow each)
	// or shared (one flow, "unknown", for all). Clients choose such names, as many as they like. A tenant that is called
	// like a flow of models is another flow, known by its hash.
	//
	// Default: The proposal's, which knows no list of models; without one every model is unknown.
	UnknownModels string `yaml:"unknownModels" default:"own" sets:"streams.UnknownModels"`
	// Flow of a request without an identity, in which no source but model finds anything: model (its model's, if key
	// has model) or shared (one flow, "anonymous", for all; weights and capacities set its share and places by that
	// name). A tenant of that name is another flow, known by its hash.
	//
	// Default: Without sources of tenants, as in the proposal, all requests are anonymous, and models are kept apart.
	Anonymous string `yaml:"anonymous" default:"model" sets:"streams.Anonymous"`
	// Order between flows: wfq (by virtual finish time), vtc (by the charges of each, over its weight), fairshare (as
	// vtc, with MindRouter's wait bonus, and a lower priority for a user of most of the recent use) or none (one flow).
	// Charges are corrected to the real costs.
	//
	// Default: The proposal's; it has golden numbers for this order.
	Discipline string `yaml:"discipline" default:"wfq" sets:"controller.Queue.Discipline" reload:"refused"`
	// Settings of discipline fairshare; no other reads them. docs/mindrouter.md has its formula.
	FairShare FairShare `yaml:"fairshare"`
	// Order of flows with equal turns, which equal weights mostly have: arrival (earliest request first) or newcomer (a
	// flow that has not been served since it began to wait, then the earliest request). With newcomer, a flow that
	// sends now and then mostly need not wait for a grant to a flow that always waits. No effect with discipline none.
	//
	// Default: The proposal's; equals go in the order of their arrival.
	TieBreak string `yaml:"tieBreak" default:"arrival" sets:"controller.Queue.TieBreak"`
	// Order within a flow: fcfs (first come, first served), wspt (least cost over 1 + priority first), edf (earliest
	// deadline first: the one in deadlineHeaders, or else the end of the TTL) or locality (as fcfs, but of the first 8 the
	// one goes that has least to lose at the engine with room, since its prompt is cached there or nowhere; no request is
	// overtaken more than 64 times, or after half of the time to its client's deadline). Classes can have an order of their own.
	//
	// Default: The first request goes first; other orders need lengths or deadlines that clients state truthfully.
	Order string `yaml:"order" default:"fcfs" sets:"controller.Queue.Order"`
	// With order wspt and without classes, the time in which a waiter becomes as urgent as one whose cost is less by the
	// factor e (2.718). From 1s to 24h; null: never.
	//
	// Default: The least cost goes first, however long others wait.
	Ageing *Duration `yaml:"ageing" default:"null" unset:"0" sets:"controller.Queue.Ageing"`
	// Cost by which a flow of weight 1 may be ahead of the flow whose turn it is, and go nevertheless because it has less to
	// lose at the engine with room; in units of cost. The share of a flow over any time is off by that at most. From 0 to 1073741824; 0:
	// flows go in turn, which discipline none requires.
	//
	// Default: The proposal's order of flows does not look at the engines' caches.
	LocalityQuantum int64 `yaml:"localityQuantum" default:"0" sets:"controller.Queue.LocalityQuantum"`
}

// Level configures the flows of one level.
type Level struct {
	// Where the identity of a flow of the level comes from, as in flows.key; in the second level any source but model, and
	// no source of the first. Requests without an identity of the second level are of one user of their tenant, "anonymous". From 1 to 16 sources.
	Key []string `yaml:"key" sets:"streams.Levels[].Key"`
	// Weight of a flow of the level by its identity, in the second level of that user of any tenant; others have that of their
	// role (in the last level), or 1. From 0.001 to 1000000.
	//
	// Default: Flows are equal until the operator sets weights.
	Weights map[string]Decimal `yaml:"weights,omitempty" default:"{}" sets:"controller.Queue.ByLevel[].Weights"`
	// Maximum number of requests of a flow that wait in a tier and class; those beyond it are rejected (flow-full). From 1 to
	// totalCapacity; null: flowCapacity in the first level; in the second what the tenant's flow has room for.
	//
	// Default: Users share the places of their tenant, until the operator divides them.
	MaxQueued *int64 `yaml:"maxQueued,omitempty" default:"null" unset:"0" sets:"controller.Queue.ByLevel[].Capacity"`
	// maxQueued of a flow by its identity, as in weights. From 1 to totalCapacity.
	//
	// Default: Every flow of the level has maxQueued until the operator sets another.
	Capacities map[string]int64 `yaml:"capacities,omitempty" default:"{}" sets:"controller.Queue.ByLevel[].Capacities"`
	// Maximum number of requests in flight of a tenant, or a user of the second level, in all tiers and classes. At least 0; 0:
	// maxInFlightPerFlow in the first level, none in the second. It needs another discipline than none.
	//
	// Default: A tenant or a user that is alone may use every slot; fairness needs no cap.
	MaxInFlight int64 `yaml:"maxInFlight,omitempty" default:"0" sets:"controller.Levels[].MaxInFlight"`
	// The same in tokens; one that is below it may take another request of any size. At least 0; 0:
	// maxTokensInFlightPerFlow in the first level, none in the second. It needs another discipline than none.
	//
	// Default: A tenant or a user that is alone may use every slot; fairness needs no cap.
	MaxTokensInFlight int64 `yaml:"maxTokensInFlight,omitempty" default:"0" sets:"controller.Levels[].MaxTokensInFlight"`
}

// FairShare configures discipline fairshare.
type FairShare struct {
	// Time for which a flow's use is recent. From 1s to 24h. A change forgets the use before it.
	//
	// Default: MindRouter's: long enough to tell a batch job from a chat, short enough to forget it over a coffee.
	Window Duration `yaml:"window" default:"5m" sets:"controller.Queue.FairShare.Window"`
	// Share of the recent use above which a flow's priority is lowered, or that to which its weight entitles it, if that is
	// more. From 0.5 to 1; 1: never.
	//
	// Default: MindRouter's. At most one flow has more than half.
	Threshold Decimal `yaml:"threshold" default:"0.5" sets:"controller.Queue.FairShare.Threshold"`
	// Priority that each second of waiting adds, in units of cost at weight 1. From 0 to 1000.
	//
	// Default: MindRouter's. It breaks ties; no flow starves without it.
	WaitBonus Decimal `yaml:"waitBonus" default:"0.1" sets:"controller.Queue.FairShare.WaitBonus"`
	// Burst credit of each flow for a second in which nothing waits and nothing is in flight, in units of cost at weight 1;
	// it is reported, and orders nothing. From 0 to 1073741824.
	//
	// Default: MindRouter's rate of credits.
	BurstRate int64 `yaml:"burstRate" default:"100" sets:"controller.Queue.FairShare.BurstRate"`
	// Largest burst credit of a flow, in units of cost at weight 1. From 0 to 1073741824.
	//
	// Default: MindRouter's, for each unit of weight, so that idle time does not turn weights round.
	BurstCap int64 `yaml:"burstCap" default:"1000" sets:"controller.Queue.FairShare.BurstCap"`
	// Part of the burst credits that stays when requests begin to wait. From 0 to 1.
	//
	// Default: MindRouter halves them.
	BurstDecay Decimal `yaml:"burstDecay" default:"0.5" sets:"controller.Queue.FairShare.BurstDecay"`
}

// Tier is one strict priority level.
type Tier struct {
	// Name of the tier; unique.
	Name string `yaml:"name" sets:"controller.Queue.Tiers[].Name streams.Tiers[].Name"`
	// Smallest objective priority that belongs to this tier; null: any that the tiers above do not take.
	//
	// Default: Without one the tier takes the priorities that the tiers above leave.
	MinPriority *int64 `yaml:"minPriority" default:"null" sets:"streams.Tiers[].MinPriority"`
	// Share of the tier in the weighted tier mode. From 0.001 to 1000000.
	//
	// Default: Equal shares until the operator says otherwise.
	Weight Decimal `yaml:"weight" default:"1" unset:"0" sets:"controller.Queue.Tiers[].Weight"`
	// Maximum number of queued requests in the tier, from 0 to 2147483647; 0: it never queues; null: only totalCapacity limits it.
	//
	// Default: totalCapacity is a limit already.
	QueueSize *int64 `yaml:"queueSize" default:"null" unset:"-1" sets:"controller.Queue.Tiers[].QueueSize"`
	// Longest time in the queue for the tier, above 0s and at most 1h; null: queueTTL.
	//
	// Default: One TTL for all, until the operator lets a tier wait longer.
	QueueTimeout *Duration `yaml:"queueTimeout" default:"null" unset:"0" sets:"controller.Queue.Tiers[].QueueTimeout"`
	// Age of its oldest waiter at which the tier is starved and may be promoted; above 0s; null: never.
	//
	// Default: The proposal's strict order has no guard.
	StarvationThreshold *Duration `yaml:"starvationThreshold" default:"null" unset:"0" sets:"controller.Queue.Tiers[].StarvationThreshold"`
	// Whether the tier may preempt requests in flight of a lower tier.
	//
	// Default: Preemption loses work, so the operator has to ask for it.
	CanPreempt bool `yaml:"canPreempt" default:"false" sets:"controller.Tiers[].CanPreempt"`
	// Stock reserved for the tier, in requests. At least 0.
	//
	// Default: Reserved stock is idle without its tier's requests.
	ReservedFloor int64 `yaml:"reservedFloor" default:"0" sets:"controller.Tiers[].ReservedFloor"`
	// Stock reserved for the tier, as a share of the capacity. At least 0; the larger of the two counts.
	//
	// Default: Reserved stock is idle without its tier's requests.
	ReservedPerSlot Decimal `yaml:"reservedPerSlot" default:"0" sets:"controller.Tiers[].ReservedPerSlot"`
}

// Class is a policy class inside a tier.
type Class struct {
	// Name of the class; unique among the classes of its model; letters, digits, '_', '.' and '-'; at most 256 bytes.
	Name string `yaml:"name" sets:"controller.Queue.Classes[].Name streams.Classes[].Name"`
	// Family of the class, which requests name instead of the class, and bucket of their uncached tokens
	// (policyClass.uncachedBuckets): a family has one class for each bucket, and only Weir chooses among them. Both empty: an
	// explicit class, which requests name, and which is not named like a family. Written like name.
	//
	// Default: Most classes are told apart by their names alone.
	Family string `yaml:"family,omitempty" default:"''" sets:"streams.Classes[].Family"`
	// Bucket of the class in its family (policyClass.uncachedBuckets[].bucket); empty without a family.
	//
	// Default: Most classes are told apart by their names alone.
	Bucket string `yaml:"bucket,omitempty" default:"''" sets:"streams.Classes[].Bucket"`
	// Credit of the class in each round, in cost units. From 1 to 1073741824.
	Quantum int64 `yaml:"quantum" sets:"controller.Queue.Classes[].Quantum"`
	// Order within each flow of the class: fcfs, wspt, edf or locality; empty: flows.order.
	//
	// Default: Classes differ in their shares; most order their requests alike.
	Order string `yaml:"order,omitempty" default:"''" sets:"controller.Queue.Classes[].Order"`
	// With order wspt, the time in which a waiter becomes as urgent as one whose cost is less by the factor e (2.718): of two
	// waiters, one that costs k e-folds more is overtaken only by arrivals within k times this. From 1s to 24h; null: never.
	//
	// Default: As in Dynamo, whose orders within a class never age.
	Ageing *Duration `yaml:"ageing,omitempty" default:"null" unset:"0" sets:"controller.Queue.Classes[].Ageing"`
	// Model whose requests alone the class is for. The classes of a model are a ring of their own, which replaces the others
	// whole for its requests; the rings of a tier take turns, one request each. At most 256 bytes; empty: for the models that
	// have no classes of their own.
	//
	// Default: Most models share their classes.
	Model string `yaml:"model,omitempty" default:"''" sets:"controller.Queue.Classes[].Ring streams.Classes[].Model"`
	// Largest number of tokens of prompts that an endpoint has to read without being busy for the class. A request
	// waits while all endpoints that it may use are busy, or the part busyRatio of them. From 0 to 1099511627776; null:
	// they do not count.
	//
	// Default: Without a threshold a request waits for a free place only.
	BusyTokens *int64 `yaml:"busyTokens,omitempty" default:"null" sets:"controller.Classes[].Busy.PrefillTokens"`
	// The same as a share of the tokens that the endpoint's engine processes in one step (maxBatchedTokens in the
	// endpoints file, or a pod's annotation); an endpoint for which that is unknown is not busy by this. From 0 to
	// 1000; null: it does not count.
	//
	// Default: Without a threshold a request waits for a free place only.
	BusyFraction *Decimal `yaml:"busyFraction,omitempty" default:"null" sets:"controller.Classes[].Busy.PrefillFraction"`
	// Part of the endpoints that a request may use; it waits while so many of them are busy. Above 0 and at most 1; it
	// needs busyTokens or busyFraction; null: all of them.
	//
	// Default: A request waits only while no endpoint would read its prompt soon.
	BusyRatio *Decimal `yaml:"busyRatio,omitempty" default:"null" unset:"0" sets:"controller.Classes[].Busy.WorkerRatio"`
	// Number of requests that may wait in the class for each endpoint of their model, ready or not. The request that crosses
	// the limit is accepted, the next one is rejected (queue-full). From 0 to 1099511627776; null: only totalCapacity limits.
	//
	// Default: totalCapacity is a limit already.
	QueueLimitPerBackend *int64 `yaml:"queueLimitPerBackend,omitempty" default:"null" sets:"controller.Queue.Classes[].Limits.Requests"`
	// The same for the tokens of their prompts. From 0 to 1099511627776; null: no limit.
	//
	// Default: totalCapacity is a limit already.
	RawTokenLimitPerBackend *int64 `yaml:"rawTokenLimitPerBackend,omitempty" default:"null" sets:"controller.Queue.Classes[].Limits.RawTokens"`
	// The same for those of them that an engine has cached. From 0 to 1099511627776; null: no limit.
	//
	// Default: totalCapacity is a limit already.
	CachedTokenLimitPerBackend *int64 `yaml:"cachedTokenLimitPerBackend,omitempty" default:"null" sets:"controller.Queue.Classes[].Limits.CachedTokens"`
}

// Model is a model that clients may ask for.
type Model struct {
	// Name that clients ask for; unique.
	Name string `yaml:"name" sets:"streams.Models[].Name"`
	// Critical (the highest tier), Standard (the one of minPriority 0) or Sheddable (the lowest), or a tier's name;
	// empty: undeclared.
	//
	// Default: criticality.default decides for models as for requests.
	Criticality string `yaml:"criticality" default:"''" sets:"streams.Models[].Criticality"`
	// Models at the backends that serve it; one is drawn by weight for each request; empty: the name itself.
	//
	// Default: A model stands for itself.
	Targets []ModelTarget `yaml:"targets" default:"[]" sets:"streams.Models[].Targets"`
}

// ModelTarget is one model that serves another's requests.
type ModelTarget struct {
	// Name of the model at the backends; unique within the model.
	Name string `yaml:"name" sets:"streams.Models[].Targets[].Name"`
	// Share of the requests. From 1 to 1000000.
	//
	// Default: Equal shares until the operator says otherwise.
	Weight int64 `yaml:"weight" default:"1" sets:"streams.Models[].Targets[].Weight"`
}

// Objective is a named priority.
type Objective struct {
	// Name that requests refer to; unique.
	Name string `yaml:"name" sets:"streams.Objectives[].Name"`
	// Its priority, which leads to the highest tier with a minPriority at or below it.
	//
	// Default: 0 is the middle tier's, as for a request that declares nothing.
	Priority int64 `yaml:"priority" default:"0" sets:"streams.Objectives[].Priority"`
}

// TenantPolicy bounds the tiers of one tenant.
type TenantPolicy struct {
	// Role of the tenant, before that of flows.role; empty: that.
	//
	// Default: Mostly the issuer of the tokens knows the roles.
	Role string `yaml:"role,omitempty" default:"''" sets:"streams.TenantPolicies[].Role"`
	// Tier of the tenant's requests that declare none (by criticality's metadata or header, an objective or the model),
	// by name or criticality; empty: criticality.default. It is clamped like a declared one.
	//
	// Default: criticality.default decides for tenants as for requests.
	Class string `yaml:"class,omitempty" default:"''" sets:"streams.TenantPolicies[].Class"`
	// Highest tier that the tenant may use, by name or criticality; a request that asks for more is clamped to it. Must
	// be given if neither class nor role nor quota is; empty: criticality.maxClass, or class where that is higher.
	//
	// Default: A policy with a class allows that class, and the tiers of every tenant.
	MaxClass string `yaml:"maxClass" default:"''" sets:"streams.TenantPolicies[].MaxClass"`
	// Tokens that the tenant may use in a window of time (docs/quotas.md); without them it has no quota.
	Quota TenantQuota `yaml:"quota,omitempty"`
}

// Role is what tenants of a role have in common; each has it alone.
type Role struct {
	// Weight of each flow of the role that flows.weights does not list. From 0.001 to 1000000.
	//
	// Default: Equal shares until the operator says otherwise.
	Weight Decimal `yaml:"weight" default:"1" unset:"0" sets:"controller.Queue.Roles[].Weight"`
	// Maximum number of requests in flight of each tenant of the role, in place of maxInFlightPerFlow; at least 0; 0: that one.
	//
	// Default: A tenant that is alone may use every slot; fairness needs no cap.
	MaxInFlight int64 `yaml:"maxInFlight" default:"0" sets:"controller.Roles[].MaxInFlight"`
	// Tier of requests that declare none, of tenants whose own policy says nothing of tiers; by name or criticality; empty:
	// criticality.default.
	//
	// Default: criticality.default decides for roles as for requests.
	Class string `yaml:"class,omitempty" default:"''" sets:"streams.Roles[].Class"`
	// Highest tier of such tenants; empty: criticality.maxClass, or class where that is higher.
	//
	// Default: A role with a class allows that class, and the tiers of every tenant.
	MaxClass string `yaml:"maxClass,omitempty" default:"''" sets:"streams.Roles[].MaxClass"`
	// Tokens that each tenant of the role may use in a window of time, unless it has a quota of its own (docs/quotas.md).
	Quota RoleQuota `yaml:"quota,omitempty"`
}

// RoleQuota is the tokens that each tenant of a role may use in a window of time.
type RoleQuota struct {
	// Tokens of prompts and answers, cached ones too; 0: no quota. From 0 to 1000000000000; needs cost: tokens.
	Tokens int64 `yaml:"tokens" sets:"controller.Quotas.Roles[].Tokens"`
	// Window of time in which each tenant may use them. From 1s to 744h.
	Window Duration `yaml:"window" sets:"controller.Quotas.Roles[].Window"`
}

// TenantQuota is the tokens that a tenant may use in a window of time.
type TenantQuota struct {
	// Tokens of prompts and answers, cached ones too; 0: no quota. From 0 to 1000000000000; needs cost: tokens.
	Tokens int64 `yaml:"tokens" sets:"controller.Quotas.Tenants[].Tokens"`
	// Window of time in which the tenant may use them. From 1s to 744h.
	Window Duration `yaml:"window" sets:"controller.Quotas.Tenants[].Window"`
}
