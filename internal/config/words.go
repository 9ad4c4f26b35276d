package config

import (
	"github.com/weir-epp/weir/pkg/request"
)

// The words of the enumerated fields.
const (
	ProfileWFQ         = "wfq"
	ProfileRecommended = "recommended"
	ProfileDynamo      = "dynamo-drr"
	ProfileSMG         = "smg-priority"
	ProfileMindRouter  = "mindrouter-fairshare"

	// DefaultProfile is the profile of a configuration that names none.
	DefaultProfile = ProfileRecommended

	CapacityReserved = "reserved"
	CapacityShared   = "shared"
	CapacityReject   = "reject"

	TiersStrict   = "strict"
	TiersWeighted = "weighted"

	CursorStay    = "stay"
	CursorAdvance = "advance"

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

	UnknownOwn    = string(request.UnknownModelsOwn)
	UnknownShared = string(request.UnknownModelsShared)

	AnonymousModel  = string(request.AnonymousModel)
	AnonymousShared = string(request.AnonymousShared)

	OrderFCFS = "fcfs"
	OrderWSPT = "wspt"
	OrderEDF  = "edf"

	Critical  = request.Critical
	Standard  = request.Standard
	Sheddable = request.Sheddable

	PresetSeed    = "seed"
	PresetGateway = "gateway"
	PresetSMG     = "smg"
	PresetDynamo  = "dynamo"

	// The sources of a flow's identity.
	SourceModel  = "model"
	SourceHeader = "header:"

	// Anonymous is the flow and the tenant of a request without an identity.
	Anonymous = "anonymous"
	// UnknownModels is the flow of all unknown models with flows.unknownModels: shared.
	UnknownModels = "unknown"
)

// The known words of the fields that conversion turns into enumerations, in the order in which messages list them. The
// words of the other fields belong to the packages that read them.
var (
	capacityModes = []string{CapacityReserved, CapacityShared, CapacityReject}
	tierModes     = []string{TiersStrict, TiersWeighted}
	cursors       = []string{CursorStay, CursorAdvance}
	topTiers      = []string{TopGuaranteed, TopFair}
	victimOrders  = []string{VictimNewest, VictimLeastCost}
	disciplines   = []string{DisciplineWFQ, DisciplineVTC, DisciplineFairShare, DisciplineNone}
	flowTieBreaks = []string{FlowTieArrival, FlowTieNewcomer}
	orders        = []string{OrderFCFS, OrderWSPT, OrderEDF}
)
