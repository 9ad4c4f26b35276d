package config

// The words that the enumerated fields know.
const (
	ProfileWFQ         = "wfq"
	ProfileRecommended = "recommended"
	ProfileDynamo      = "dynamo-drr"
	ProfileSMG         = "smg-priority"
	ProfileMindRouter  = "mindrouter-fairshare"

	CapacityReserved = "reserved"
	CapacityShared   = "shared"

	TiersStrict   = "strict"
	TiersWeighted = "weighted"

	TopGuaranteed = "guaranteed"
	TopFair       = "fair"

	VictimNewest    = "newest"
	VictimLeastCost = "least-cost"

	DisciplineWFQ       = "wfq"
	DisciplineVTC       = "vtc"
	DisciplineFairShare = "fairshare"
	DisciplineNone      = "none"

	FlowTieArrival  = "arrival"
	FlowTieNewcomer = "newcomer"

	UnknownOwn    = "own"
	UnknownShared = "shared"

	OrderFCFS = "fcfs"
	OrderWSPT = "wspt"
	OrderEDF  = "edf"

	Critical  = "Critical"
	Standard  = "Standard"
	Sheddable = "Sheddable"

	PresetSeed    = "seed"
	PresetGateway = "gateway"
	PresetSMG     = "smg"
	PresetDynamo  = "dynamo"

	BodyAuto   = "auto"
	BodyAlways = "always"
	BodyNever  = "never"

	PassOnPick  = "pick"
	PassOnQueue = "queue"

	FilterReady  = "ready"
	FilterSubset = "subset"
	FilterModel  = "model"

	ScorerLeastStock = "least-stock"

	PickerMaxScore = "max-score"

	EndpointTieRotate = "rotate"
	EndpointTieFirst  = "first"
	EndpointTieRandom = "random"

	// Anonymous is the flow and the tenant of a request without an identity.
	Anonymous = "anonymous"
	// UnknownModels is the flow of all unknown models with flows.unknownModels: shared.
	UnknownModels = "unknown"
)

// The known words of each enumerated field, in the order in which messages list them.
var (
	capacityModes     = []string{CapacityReserved, CapacityShared}
	tierModes         = []string{TiersStrict, TiersWeighted}
	topTiers          = []string{TopGuaranteed, TopFair}
	victimOrders      = []string{VictimNewest, VictimLeastCost}
	disciplines       = []string{DisciplineWFQ, DisciplineVTC, DisciplineFairShare, DisciplineNone}
	flowTieBreaks     = []string{FlowTieArrival, FlowTieNewcomer}
	unknownModels     = []string{UnknownOwn, UnknownShared}
	orders            = []string{OrderFCFS, OrderWSPT, OrderEDF}
	criticalities     = []string{Critical, Standard, Sheddable}
	presets           = []string{PresetSeed, PresetGateway, PresetSMG, PresetDynamo}
	bodies            = []string{BodyAuto, BodyAlways, BodyNever}
	passOns           = []string{PassOnPick, PassOnQueue}
	filters           = []string{FilterReady, FilterSubset, FilterModel}
	scorers           = []string{ScorerLeastStock}
	pickers           = []string{PickerMaxScore}
	endpointTieBreaks = []string{EndpointTieRotate, EndpointTieFirst, EndpointTieRandom}

	// reasons are the outcomes that have a status of ours, as flowcontrol names them; a test of the wiring holds
	// the two lists together.
	reasons = []string{
		"flow-full", "queue-full", "shed", "displaced", "ttl-expired", "preempted", "client-cancelled",
		"deadline-exceeded", "no-endpoint", "draining", "bad-request", "too-large", "body-timeout",
		"no-memory", "internal",
	}
)

// Reasons are the rejections that responses.status may give a status of their own.
func Reasons() []string { return append([]string(nil), reasons...) }
