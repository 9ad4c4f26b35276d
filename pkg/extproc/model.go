package extproc

import "sort"

// modelTargets are the targets of one model, and what else the configuration says of it.
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

// unknownModels is the flow of all unknown models if they share one, and then also their label in metrics. Nobody can claim
// to be it.
const unknownModels = "unknown"

// setModel sets the model that the request is for, and draws its target.
func (st *mainStream) setModel(model string) {
	s, c := st.server, st.cfg
	st.model, st.target = model, s.target(c, model)
	st.identity.unknownModel = c.UnknownModels == UnknownModelsShared && c.models[model] == nil && !s.picker.Lists(model)
}

// labels returns the model and its target as metrics label them: clients can make up any number of unknown models.
func (st *mainStream) labels() (model, target string) {
	if st.identity.unknownModel {
		return unknownModels, unknownModels
	}
	return st.model, st.target
}

// target draws the target of a model. A model without targets is its own.
func (s *Server) target(c *compiled, model string) string {
	t := c.models[model]
	if t == nil {
		t = c.otherModels
	}
	if t == nil || len(t.names) == 0 {
		return model
	}
	if len(t.names) == 1 {
		return t.names[0]
	}
	s.drawMu.Lock()
	draw := s.draw.IntN(t.total())
	s.drawMu.Unlock()
	return t.target(draw)
}
