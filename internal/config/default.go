package config

import (
	"time"

	"github.com/weir-epp/weir/pkg/extproc"
	"github.com/weir-epp/weir/pkg/request"
	"github.com/weir-epp/weir/pkg/scheduling"
)

// Default returns the wfq profile: the values of the original queueing proposal, which every profile changes. It is not
// what a file without a profile gets (DefaultProfile).
func Default() Document {
	return Document{
		APIVersion: APIVersion,
		Kind:       Kind,
		Profile:    ProfileWFQ,
		FairRequestQueue: FairRequestQueue{
			TotalCapacity:   1000,
			FlowCapacity:    100,
			QueueTTL:        Duration(30 * time.Second),
			CapacityMode:    CapacityReserved,
			TierMode:        TiersStrict,
			Cursor:          CursorStay,
			PromotionBudget: MustDecimal("0.1"),
			TopTier:         TopGuaranteed,
		},
		RequestQueueController: RequestQueueController{
			Enabled:                      true,
			WatermarkPerBackend:          2,
			PercentageDeviationForBounds: MustDecimal("0.1"),
			NumPoppers:                   10,
			PopperWaitBase:               Duration(10 * time.Millisecond),
			PopperWaitJitterMax:          Duration(time.Millisecond),
			ExpiryCleanupInterval:        Duration(time.Second),
			HoldWhenEmpty:                true,
			VictimOrder:                  VictimNewest,
			DrainWindow:                  Duration(30 * time.Second),
			MinDrain:                     Duration(5 * time.Second),
		},
		Flows: Flows{
			Key: []string{SourceModel}, Discipline: DisciplineWFQ, TieBreak: FlowTieArrival, Order: OrderFCFS,
			UnknownModels: UnknownOwn, Anonymous: AnonymousModel,
		},
		Tiers: []Tier{
			{Name: "critical", MinPriority: new(int64(1)), Weight: One},
			{Name: "default", MinPriority: new(int64(0)), Weight: One},
			{Name: "sheddable", Weight: One},
		},
		Responses: Responses{Preset: PresetSeed},
		// An unconfigured Weir queues instead of shedding.
		Criticality:    Criticality{Default: Critical, ObjectiveHeaders: []string{"x-llm-d-inference-objective"}},
		TrustedHeaders: TrustedHeaders{Model: "x-gateway-model-name"},
		Cost:           string(extproc.CostRequests),
		Tokens: Tokens{
			Weights:      TokenWeights{Input: One, CachedInput: One, Output: 2 * One},
			StockWeights: StockWeights{Input: One, CachedInput: One, Output: One},
			Input:        TokenInput{BytesPerToken: 4 * One},
			Output:       TokenOutput{Quantile: MustDecimal("0.9"), Window: 64, Floor: 16, ColdStart: 1000, ColdRate: 50},
		},
		Usage:       string(extproc.UsageAuto),
		RequestBody: string(request.BodyAuto),
		PassOn:      string(request.PassOnPick),
		Limits: Limits{
			MaxBodyBytes:      32 << 20,
			MaxBodyBytesTotal: 1 << 30,
			BodyTimeout:       Duration(30 * time.Second),
			MaxHeaderBytes:    60<<10 - 512,
			MaxHeaders:        98,
			MaxFlows:          100_000,
		},
		Scheduling: Scheduling{
			Filters: []string{scheduling.FilterReady, scheduling.FilterSubset, scheduling.FilterModel},
			Scorers: []Scorer{{Name: scheduling.ScorerLeastStock, Weight: 1}},
			Picker:  scheduling.PickerMaxScore, TieBreak: scheduling.TieRotate, Fallbacks: 0,
		},
	}
}
