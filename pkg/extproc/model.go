package extproc

import "sort"

// modelTargets are the targets of one model, and what the configuration says of it.
type modelTargets struct {
	rank    int // noRank: it says nothing
	names   []string
	until   []int // the sums of the weights up to each
	rewrite bool  // a target has another name than the model
}

func newModelTargets(m *Model, rank int) *modelTargets {
	t := &modelTargets{rank: rank}
	sum := 0
	for _, target := range m.Targets {
		sum += target.Weight
		t.names = append(t.names, target.Name)
		t.until = append(t.until, sum)
		t.rewrite = t.rewrite || target.Name != m.Name
	}
	return t
}

// target is the one that the draw below total falls on.
func (t *modelTargets) target(draw int) string {
	return t.names[sort.SearchInts(t.until, draw+1)]
}

// total is the sum of the weights, 0 when the model has no targets.
func (t *modelTargets) total() int {
	if len(t.until) == 0 {
		return 0
	}
	return t.until[len(t.until)-1]
}

// unknownModels is the flow of all unknown models where they share one, and their label in metrics.
const unknownModels = "unknown"

// named takes in the model that the request is for.
func (st *stream) named(model string) {
	s, c := st.server, st.cfg
	st.model, st.target = model, s.target(c, model)
	st.identity.unknownModel = c.UnknownModels == UnknownModelsShared && c.models[model] == nil && !s.picker.Lists(model)
}

// labels are the model and its target as metrics have them: clients choose the names of unknown models.
func (st *stream) labels() (model, target string) {
	if st.identity.unknownModel {
		return unknownModels, unknownModels
	}
	return st.model, st.target
}

// target draws the target of a model, which is its own name when it is not configured.
func (s *Server) target(c *compiled, model string) string {
	t := c.models[model]
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
