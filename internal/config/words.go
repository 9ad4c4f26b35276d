package config

import (
	"reflect"

	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/request"
)

// The words that other code names, too.
const (
	ProfileWFQ         = "wfq"
	ProfileRecommended = "recommended"
	ProfileDynamo      = "dynamo-drr"
	ProfileSMG         = "smg-priority"
	ProfileMindRouter  = "mindrouter-fairshare"

	// DefaultProfile is the profile of a configuration that names none.
	DefaultProfile = ProfileRecommended

	TiersWeighted       = "weighted"
	DisciplineVTC       = "vtc"
	DisciplineFairShare = "fairshare"
	DisciplineNone      = "none"
	FlowTieArrival      = "arrival"
	FlowTieNewcomer     = "newcomer"
	OrderEDF            = "edf"
	OrderLocality       = "locality"
	UnknownShared       = string(request.UnknownModelsShared)

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
		{"reserved", fairqueue.Reserved}, {"shared", fairqueue.Shared}, {"reject", fairqueue.Reject},
	},
	"fairRequestQueue.tierMode":          {{"strict", fairqueue.Strict}, {TiersWeighted, fairqueue.Weighted}},
	"fairRequestQueue.cursor":            {{"stay", fairqueue.Stay}, {"advance", fairqueue.Advance}},
	"fairRequestQueue.topTier":           {{"guaranteed", true}, {"fair", false}},
	"requestQueueController.victimOrder": {{"newest", dispatch.NewestFirst}, {"least-cost", dispatch.LeastCostFirst}},
	"flows.discipline": {
		{"wfq", fairqueue.WFQ}, {DisciplineVTC, fairqueue.VTC}, {DisciplineFairShare, fairqueue.FairShare}, {DisciplineNone, fairqueue.OneFlow},
	},
	"flows.tieBreak":  {{FlowTieArrival, fairqueue.ByArrival}, {FlowTieNewcomer, fairqueue.NewcomerFirst}},
	"flows.order":     orders,
	"classes[].order": orders,
}

var orders = enumeration{{"fcfs", fairqueue.FCFS}, {"wspt", fairqueue.WSPT}, {OrderEDF, fairqueue.EDF}, {OrderLocality, fairqueue.Locality}}

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
