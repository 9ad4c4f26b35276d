package config

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-epp/weir/pkg/extproc"
	"github.com/weir-epp/weir/pkg/fairqueue"
)

// profiles are the named sets of defaults, each as a change of Default.
var profiles = []struct {
	name   string
	change func(*Document)
}{
	{ProfileWFQ, func(*Document) {}},
	{ProfileRecommended, recommended},
	{ProfileDynamo, dynamo},
	{ProfileSMG, smg},
	{ProfileMindRouter, mindrouter},
}

// Profiles returns the names of the profiles, wfq first.
func Profiles() []string {
	names := make([]string, len(profiles))
	for i, p := range profiles {
		names[i] = p.name
	}
	return names
}

// ProfileList returns these names in one text, with a mark at those that this build refuses.
func ProfileList() string {
	names := Profiles()
	for i, name := range names {
		if refused(name) {
			names[i] += " (not supported yet)"
		}
	}
	return strings.Join(names, ", ")
}

// Profile returns a copy of a profile's document. The error for an unknown name lists the known ones.
func Profile(name string) (Document, error) {
	i := slices.IndexFunc(profiles, func(p struct {
		name   string
		change func(*Document)
	},
	) bool {
		return p.name == name
	})
	if i < 0 {
		return Document{}, fmt.Errorf("config: profile %q: must be one of %s", name, strings.Join(Profiles(), ", "))
	}
	d := Default()
	d.Profile = name
	profiles[i].change(&d)
	return d, nil
}

// identityKey identifies a flow by the tenant where a gateway names one, otherwise by the model.
func identityKey() []string { return []string{"header:x-llm-d-inference-fairness-id", SourceModel} }

// slots is the number of requests that an engine is assumed to run at a time: SMG's figure for a backend that reports
// none, and a usual --max-num-seqs of a vLLM on one accelerator. Too few leave the engine idle; too many move the
// backlog into it, where nothing can order it any more. Measure, then set it.
const slots = 64

// fillSlots keeps n slots of each backend busy. Poppers release only below the lower bound, so all three are n.
func fillSlots(c *RequestQueueController, n int64) {
	c.WatermarkPerBackend = n
	c.LowerBoundPerBackend = new(n)
	c.UpperBoundPerBackend = new(n)
}

// recommended is for new installations: everyone queues, tiers set the order, and a noisy flow is the first to lose its
// places.
func recommended(d *Document) {
	// A full queue displaces instead of rejecting a quiet flow because of a noisy one. So no flow needs a limit of its
	// own: a flow that is alone may fill the queue, and loses places as others arrive.
	d.FairRequestQueue.CapacityMode = CapacityShared
	d.FairRequestQueue.FlowCapacity = d.FairRequestQueue.TotalCapacity
	// Otherwise a client that may call itself critical would be exempt from every other limit.
	d.FairRequestQueue.TopTier = TopFair
	// One dispatch in ten goes to a starved head: enough to end every wait, too few to be noticed by the tiers above.
	d.FairRequestQueue.PromotionBudget = MustDecimal("0.1")
	// No request is shed that could wait. A request that declares nothing is in the middle, so that there is room above
	// it.
	d.RequestQueueController.EnqueueAll = true
	d.Criticality.Default = Standard
	// Lower = watermark = upper: the slots are kept full, and the backlog is ordered here and not in the engine.
	fillSlots(&d.RequestQueueController, slots)
	// The tenant is who the proxy has verified, by whatever means it has: a token's subject, or a name in the header.
	d.Flows.Key = append([]string{"metadata:envoy.filters.http.jwt_authn/payload/sub"}, identityKey()...)
	// Users pay in tokens, so tenants share in tokens: what requests have really used, not what was guessed.
	d.Cost = string(extproc.CostTokens)
	d.Flows.Discipline = DisciplineVTC
	// A flow that sends now and then mostly does not wait for a grant to a flow that always has more.
	d.Flows.TieBreak = FlowTieNewcomer
	d.Responses.Preset = PresetGateway
	// Below the TTL of 30 s, so that the guard can act before the waiter expires; later for the lower tier.
	d.Tiers[1].StarvationThreshold = new(Duration(10 * time.Second))
	d.Tiers[2].StarvationThreshold = new(Duration(20 * time.Second))
	// Preemption and reservations cost throughput, so they are off unless configured.
}

// dynamo is one tier whose classes share it by deficit round robin; without classes there is one class.
// They are charged the tokens of their prompts, which stay as estimated.
func dynamo(d *Document) {
	d.FairRequestQueue.CapacityMode = CapacityReject
	d.FairRequestQueue.TopTier = TopFair
	d.FairRequestQueue.FlowCapacity = d.FairRequestQueue.TotalCapacity // one flow in each class
	d.RequestQueueController.EnqueueAll = true
	d.Criticality.Default = Standard
	d.RequestQueueController.HoldWhenEmpty = false
	fillSlots(&d.RequestQueueController, slots)
	d.Cost, d.Tokens.Weights.Output, d.Usage = string(extproc.CostTokens), 0, string(extproc.UsageNone)
	d.Flows.Discipline = DisciplineNone
	d.PolicyClass = PolicyClass{
		Headers:        []string{"x-dynamo-meta-policy-class", "x-dynamo-policy-class"},
		PriorityHeader: "x-dynamo-request-priority", StrictPriorityHeader: "x-dynamo-request-strict-priority",
		MaxStrictPriority: fairqueue.MaxStrict,
	}
	d.Tiers = []Tier{{Name: "default", MinPriority: new(int64(0)), Weight: One}}
	d.Responses.Preset = PresetDynamo
}

// smg is SMG's four strict tiers with its reservations and timeouts. `weir config import --from smg` imports what SMG's
// own file can change.
func smg(d *Document) {
	d.FairRequestQueue.CapacityMode = CapacityShared
	d.FairRequestQueue.TopTier = TopFair
	d.FairRequestQueue.TotalCapacity = 1856 // the sum of the tiers' queues
	d.FairRequestQueue.FlowCapacity = 1024  // the largest of them: a tier is one flow
	d.FairRequestQueue.PromotionBudget = One
	d.RequestQueueController.EnqueueAll = true
	fillSlots(&d.RequestQueueController, slots)
	d.RequestQueueController.SlotsPerBackend = new(Slots(slots))
	// First come, first served within a tier, as SMG has it. `flows.discipline: wfq` gives fair flows inside each tier,
	// which SMG lacks; a full tier then displaces the noisiest flow's newest request.
	d.Flows.Discipline = DisciplineNone
	d.Criticality.Header, d.Criticality.Default, d.Criticality.MaxClass = "x-smg-priority", "default", "default"
	d.Responses.Preset = PresetSMG
	tier := func(name string, priority *int64, floor int64, perSlot string, queue int64, timeout, starved time.Duration) Tier {
		return Tier{
			Name: name, MinPriority: priority, Weight: One, QueueSize: new(queue),
			QueueTimeout: new(Duration(timeout)), StarvationThreshold: new(Duration(starved)),
			ReservedFloor: floor, ReservedPerSlot: MustDecimal(perSlot),
		}
	}
	d.Tiers = []Tier{
		tier("system", new(int64(2)), 32, "0", 64, 30*time.Second, 5*time.Second),
		tier("interactive", new(int64(1)), 128, "0.25", 256, 30*time.Second, 5*time.Second),
		tier("default", new(int64(0)), 0, "0.1", 512, time.Minute, 30*time.Second),
		tier("bulk", nil, 0, "0", 1024, 5*time.Minute, 2*time.Minute),
	}
	d.Tiers[0].CanPreempt = true
	d.Tiers[1].CanPreempt = true
}

// mindrouter is one tier whose flows are users in MindRouter's fair share.
func mindrouter(d *Document) {
	d.FairRequestQueue.CapacityMode = CapacityShared
	d.FairRequestQueue.TopTier = TopFair
	d.RequestQueueController.EnqueueAll = true
	d.Criticality.Default = Standard
	d.Flows.Key = identityKey()
	d.Flows.Discipline = DisciplineFairShare
	d.Tiers = []Tier{{Name: "default", MinPriority: new(int64(0)), Weight: One}}
}
