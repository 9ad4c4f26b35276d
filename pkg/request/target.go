package request

import "sort"

// Draw draws targets.
type Draw interface {
	// IntN returns a uniformly random number from 0 to n-1.
	IntN(n int) int
}

// target draws the target of a model. A model without targets is its own target.
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
