package request

import (
	"fmt"

	"github.com/weir-epp/weir/pkg/body"
)

// UnknownModel is the flow of all unknown models if they share one, and then also their label in metrics. No tenant can
// claim it.
const UnknownModel = "unknown"

// MaxModelBytes is the longest name of a model. The name outlives the body: in the lane, the flow's key and the
// metrics.
const MaxModelBytes = 1024

// Models has the models of the endpoints.
type Models interface {
	// Lists reports whether an endpoint of the pool, ready or not, lists the model. An endpoint without a list may serve
	// any model, and does not count.
	Lists(model string) bool
}

// setModel sets the model that the request is for, and draws its target.
func (q *Request) setModel(model string) {
	r := q.rules
	q.Model, q.Target = model, r.target(model, q.draw)
	q.identity.unknownModel = r.cfg.UnknownModels == UnknownModelsShared && r.models[model] == nil && !q.known.Lists(model)
}

// Labels returns the labels of the model and its target in metrics. They are bounded: clients can make up any number of
// unknown models.
func (q *Request) Labels() (model, target string) {
	if q.identity.unknownModel {
		return UnknownModel, UnknownModel
	}
	return q.Model, q.Target
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
