package estimate

import "slices"

// The bounds of the memory: flows, and models for each flow.
const (
	MaxFlows  = 4096
	MaxModels = 8
)

// entry is the state of a flow with a model.
type entry struct {
	model *model // nil only until the estimator has set it
	name  string // of the model
	input
	outputs outputs
	rate    rate
}

// flow has the entries of a flow, the one with the latest usage first.
type flow struct {
	name        string
	entries     []*entry
	newer, past *flow // by latest usage; past is the flow before it
}

// table finds entries, and orders flows by their latest usage.
type table struct {
	flows          map[string]*flow
	newest, oldest *flow
}

func newTable() table { return table{flows: make(map[string]*flow)} }

// find returns the entry of a flow and model, or nil.
func (t *table) find(name, model string) *entry {
	if f := t.flows[name]; f != nil {
		for _, x := range f.entries {
			if x.name == model {
				return x
			}
		}
	}
	return nil
}

// take returns the entry of a flow and model, and makes it the latest used. A new entry has no model yet. left are the
// entries that had to leave for it.
func (t *table) take(name, model string) (x *entry, left []*entry) {
	f := t.flows[name]
	if f == nil {
		if len(t.flows) == MaxFlows {
			left = t.oldest.entries
			delete(t.flows, t.oldest.name)
			t.unlink(t.oldest)
		}
		f = &flow{name: name}
		t.flows[name] = f
	} else {
		t.unlink(f)
	}
	t.link(f)
	i := slices.IndexFunc(f.entries, func(x *entry) bool { return x.name == model })
	if i < 0 {
		if len(f.entries) == MaxModels {
			left = f.entries[MaxModels-1:]
			f.entries = f.entries[: MaxModels-1 : MaxModels-1]
		}
		i = len(f.entries)
		f.entries = append(f.entries, &entry{name: model, outputs: newOutputs()})
	}
	x = f.entries[i]
	copy(f.entries[1:i+1], f.entries[:i])
	f.entries[0] = x
	return x, left
}

// link makes a flow the newest.
func (t *table) link(f *flow) {
	f.past, f.newer = t.newest, nil
	if t.newest != nil {
		t.newest.newer = f
	} else {
		t.oldest = f
	}
	t.newest = f
}

func (t *table) unlink(f *flow) {
	if f.newer != nil {
		f.newer.past = f.past
	} else {
		t.newest = f.past
	}
	if f.past != nil {
		f.past.newer = f.newer
	} else {
		t.oldest = f.newer
	}
}
