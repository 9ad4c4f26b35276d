package config

import (
	"reflect"

	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/fairqueue"
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

// The values of the page tag, which says where a key is documented; without it, in the reference.
const (
	PageFirst = "first" // what a user sets
	PageRare  = "rare"  // the settings that nobody needs
)

// enumeration lists the words of a key with the values that they stand for in a package, in the order in which messages
// list them.
type enumeration []struct {
	word  string
	value any
}

// enumerations has the words of the keys that conversion turns into other values, by key. The words of the other keys
// belong to the packages that read them.
var enumerations = map[string]enumeration{
	"fairRequestQueue.capacityMode": {
		{CapacityReserved, fairqueue.Reserved}, {CapacityShared, fairqueue.Shared}, {CapacityReject, fairqueue.Reject},
	},
	"fairRequestQueue.tierMode":          {{TiersStrict, fairqueue.Strict}, {TiersWeighted, fairqueue.Weighted}},
	"fairRequestQueue.cursor":            {{CursorStay, fairqueue.Stay}, {CursorAdvance, fairqueue.Advance}},
	"fairRequestQueue.topTier":           {{TopGuaranteed, true}, {TopFair, false}},
	"requestQueueController.victimOrder": {{VictimNewest, dispatch.NewestFirst}, {VictimLeastCost, dispatch.LeastCostFirst}},
	"flows.discipline": {
		{DisciplineWFQ, fairqueue.WFQ}, {DisciplineVTC, fairqueue.VTC}, {DisciplineFairShare, nil}, {DisciplineNone, fairqueue.OneFlow},
	},
	"flows.tieBreak":  {{FlowTieArrival, fairqueue.ByArrival}, {FlowTieNewcomer, fairqueue.NewcomerFirst}},
	"flows.order":     orders,
	"classes[].order": orders,
}

var orders = enumeration{{OrderFCFS, fairqueue.FCFS}, {OrderWSPT, fairqueue.WSPT}, {OrderEDF, fairqueue.EDF}}

// words returns the words alone.
func (e enumeration) words() []string {
	words := make([]string, len(e))
	for i, of := range e {
		words[i] = of.word
	}
	return words
}

// value returns the value of a word, the zero of the type for a word that has none.
func (e enumeration) value(word string, of reflect.Type) reflect.Value {
	for _, known := range e {
		if known.word == word && known.value != nil {
			return reflect.ValueOf(known.value)
		}
	}
	return reflect.Zero(of)
}
