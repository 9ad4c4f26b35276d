package config

// Flows configures what makes a flow, and how flows share.
type Flows struct {
	// Where the identity of a flow comes from; the first source that is present counts: header:NAME,
	// metadata:NAMESPACE/PATH, attribute:NAME, or model (the model and its target). By naming a header here the
	// operator asserts that the gateway sets or strips it. From 1 to 16 sources.
	Key []string `yaml:"key"`
	// Weight of a flow by its identity; other flows have 1. From 0.001 to 1000000. Identities that come from the source
	// model are MODEL/TARGET, such as "m/m" for a model without targets.
	Weights map[string]Decimal `yaml:"weights"`
	// flowCapacity of a flow by its identity, as in weights. From 1 to totalCapacity.
	Capacities map[string]int64 `yaml:"capacities"`
	// Flows of models that neither models nor the list of an endpoint names, if the source is model: own (a flow each)
	// or shared (one flow, "unknown", for all). Clients choose such names, as many as they like. A tenant that is called
	// like a flow of models is another flow, known by its hash.
	UnknownModels string `yaml:"unknownModels"`
	// Flow of a request without an identity, in which no source but model finds anything: model (its model's, if key has
	// model) or shared (one flow, "anonymous", for all, whose share and places weights and capacities set by that name).
	// A tenant of that name is another flow, known by its hash.
	Anonymous string `yaml:"anonymous"`
	// Order between flows: wfq (by virtual finish time), vtc (by what each has been charged, over its weight), fairshare,
	// or none (one flow). Charges are corrected to what requests have really cost.
	Discipline string `yaml:"discipline"`
	// Which flow goes first if their turns are equal, as they mostly are for equal weights: with arrival, the one whose
	// request arrived first; with newcomer, one that has not been served since it began to wait, then the one whose
	// request arrived first. So with newcomer, a flow that sends now and then mostly need not wait for a grant to a
	// flow that always waits. No effect with discipline none.
	TieBreak string `yaml:"tieBreak"`
	// Order within a flow: fcfs (first come, first served), wspt (least cost over 1 + priority first) or edf (earliest
	// deadline first: the one in deadlineHeaders, or else the end of the TTL). Classes can have an order of their own.
	Order string `yaml:"order"`
}

// Tier is one strict priority level.
type Tier struct {
	// Name of the tier; unique.
	Name string `yaml:"name"`
	// Smallest objective priority that belongs to this tier; null: any that the tiers above do not take.
	MinPriority *int64 `yaml:"minPriority"`
	// Share of the tier in the weighted tier mode. From 0.001 to 1000000.
	Weight Decimal `yaml:"weight"`
	// Maximum number of queued requests in the tier; 0: it never queues; null: only totalCapacity limits it.
	QueueSize *int64 `yaml:"queueSize"`
	// Longest time in the queue for the tier, as for queueTTL; null: queueTTL.
	QueueTimeout *Duration `yaml:"queueTimeout"`
	// Age of its oldest waiter at which the tier is starved and may be promoted; above 0s; null: never.
	StarvationThreshold *Duration `yaml:"starvationThreshold"`
	// Whether the tier may preempt requests in flight of a lower tier.
	CanPreempt bool `yaml:"canPreempt"`
	// Stock reserved for the tier, in requests. At least 0.
	ReservedFloor int64 `yaml:"reservedFloor"`
	// Stock reserved for the tier, as a share of the capacity. At least 0; the larger of the two counts.
	ReservedPerSlot Decimal `yaml:"reservedPerSlot"`
}

func (t *Tier) setDefaults() { t.Weight = One }

// Class is a policy class inside a tier.
type Class struct {
	// Name of the class; unique; letters, digits, '_', '.' and '-'; at most 256 bytes.
	Name string `yaml:"name"`
	// Credit of the class in each round, in cost units. Above 0.
	Quantum int64 `yaml:"quantum"`
	// Order within each flow of the class: fcfs, wspt or edf; empty: flows.order.
	Order string `yaml:"order"`
}

// Model is a model that clients may ask for.
type Model struct {
	// Name that clients ask for; unique.
	Name string `yaml:"name"`
	// Critical (the highest tier), Standard (the one of minPriority 0) or Sheddable (the lowest), or a tier's name;
	// empty: undeclared.
	Criticality string `yaml:"criticality"`
	// Models at the backends that serve it; one is drawn by weight for each request; empty: the name itself.
	Targets []ModelTarget `yaml:"targets"`
}

// ModelTarget is one model that serves another's requests.
type ModelTarget struct {
	// Name of the model at the backends; unique within the model.
	Name string `yaml:"name"`
	// Share of the requests. From 1 to 1000000.
	Weight int64 `yaml:"weight"`
}

func (t *ModelTarget) setDefaults() { t.Weight = 1 }

// Objective is a named priority.
type Objective struct {
	// Name that requests refer to; unique.
	Name string `yaml:"name"`
	// Its priority: it belongs to the highest tier whose minPriority it reaches.
	Priority int64 `yaml:"priority"`
}

// TenantPolicy is what one tenant may ask for.
type TenantPolicy struct {
	// Tier of the tenant's requests that declare none (by criticality's metadata or header, an objective or the model),
	// by name or criticality; empty: criticality.default. It is clamped as what they declare is.
	Class string `yaml:"class,omitempty"`
	// Highest tier that the tenant may use, by name or criticality; a request that asks for more is clamped to it. Must
	// be given if class is not; empty: criticality.maxClass, or class where that is higher.
	MaxClass string `yaml:"maxClass"`
}
