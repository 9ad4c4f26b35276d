package request

import (
	"fmt"
	"sort"

	"github.com/weir-epp/weir/pkg/extproc/body"
)

// modelTargets are the targets of one model, and its tier.
type modelTargets struct {
	rank  int // of its criticality; noRank if it has none
	names []string
	until []int // the sum of the weights up to and including each target's
}

func newModelTargets(targets []Target, rank int) *modelTargets {
	t := &modelTargets{rank: rank}
	sum := 0
	for _, target := range targets {
		sum += target.Weight
		t.names = append(t.names, target.Name)
		t.until = append(t.until, sum)
	}
	return t
}

// target returns the target for a draw from 0 to total()-1.
func (t *modelTargets) target(draw int) string {
	return t.names[sort.SearchInts(t.until, draw+1)]
}

// total returns the sum of the weights, or 0 if the model has no targets.
func (t *modelTargets) total() int {
	if len(t.until) == 0 {
		return 0
	}
	return t.until[len(t.until)-1]
}

// UnknownModel is the flow of all unknown models if they share one, and then also their label in metrics. No tenant can
// claim it.
const UnknownModel = "unknown"

// MaxModelBytes is the longest name of a model. The name outlives its body: in the lane, the flow's key and the metrics.
const MaxModelBytes = 1024

// Models knows the models of the endpoints.
type Models interface {
	// Lists reports whether an endpoint of the pool, ready or not, lists the model. An endpoint without a list may serve
	// any model, and does not count.
	Lists(model string) bool
}

// Draw draws targets.
type Draw interface {
	// IntN returns a number from 0 to n-1, each as likely.
	IntN(n int) int
}

// setModel sets the model that the request is for, and draws its target.
func (q *Request) setModel(model string) {
	r := q.rules
	q.Model, q.Target = model, r.target(model, q.draw)
	q.identity.unknownModel = r.cfg.UnknownModels == UnknownModelsShared && r.models[model] == nil && !q.known.Lists(model)
}

// Labels returns the model and its target as metrics label them: clients can make up any number of unknown models.
func (q *Request) Labels() (model, target string) {
	if q.identity.unknownModel {
		return UnknownModel, UnknownModel
	}
	return q.Model, q.Target
}

// target draws the target of a model. A model without targets is its own.
func (r *Rules) target(model string, draw Draw) string {
	t := r.models[model]
	if t == nil {
		t = r.otherModels
	}
	if t == nil || len(t.names) == 0 {
		return model
	}
	if len(t.names) == 1 {
		return t.names[0]
	}
	return t.target(draw.IntN(t.total()))
}

// needsModel reports whether the flow, the tier, the ring, the placement or a rewrite depends on the model's name.
func (q *Request) needsModel() bool {
	r := q.rules
	return r.cfg.RoutesByModel || len(r.models) > 0 || r.otherModels != nil || len(r.modelRings) > 0 || q.identity.byModel
}

// edit lists the replacements in the body.
func (q *Request) edit(f *body.Fields) {
	if q.Target != "" && f.ModelEnd > 0 && f.Model != q.Target {
		q.Edits = append(q.Edits, f.Rename(q.Target))
	}
	if f.Stream && f.AskUsage.Text != "" && q.asksUsage {
		q.Edits, q.AsksUsage = append(q.Edits, f.AskUsage), true
	}
}

func modelTooLong() error {
	return malformed("model", fmt.Sprintf("The field \"model\" is longer than %d bytes.", MaxModelBytes))
}
