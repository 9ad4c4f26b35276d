package scheduling

import (
	"slices"
	"strconv"
	"strings"
)

// constraint is an Ask in canonical form.
type constraint struct {
	model    string
	adapter  bool       // the model is a LoRA adapter
	confined bool       // the request has a subset
	entries  []HostPort // that subset, canonical
	text     string     // and as it appears in the lane's name
	needs    Needs
	// uncached is the least number of its prompt tokens that a serving engine has to read; 0: unknown.
	uncached int64
}

// reachOf applies the scheduler's filters. The snapshot has shared reaches for the common cases, the whole pool and a
// model; a subset is looked up entry by entry.
func (s *Scheduler) reachOf(snap *Snapshot, c *constraint) *reach {
	needs := s.needsOf(snap, c)
	if !s.filtersSubset || !c.confined {
		return s.servingReach(snap, c.model).meeting(needs)
	}
	positions := snap.named(c.entries)
	if s.filtersModel && c.model != "" && snap.listsModels {
		positions = snap.serving(positions, c.model)
	}
	if needs != 0 {
		positions = snap.meeting(positions, needs)
	}
	return newReach(snap, positions)
}

// servingReach returns the reach of all endpoints that serve a model.
func (s *Scheduler) servingReach(snap *Snapshot, model string) *reach {
	if !s.filtersModel || model == "" || !snap.listsModels {
		return snap.whole
	}
	if m, ok := snap.byModel[model]; ok {
		return m.reach
	}
	return snap.anyModel
}

// named returns the positions of the members named by the entries, ascending. No two canonical entries name the same
// member.
func (s *Snapshot) named(entries []HostPort) []int32 {
	positions := make([]int32, 0, len(entries))
	for _, entry := range entries {
		if entry.Port == 0 {
			positions = append(positions, s.byHost[entry.Host]...)
		} else if p, ok := s.byAddress[entry]; ok {
			positions = append(positions, p)
		}
	}
	slices.Sort(positions)
	return positions
}

// laneName returns the lane's name on the snapshot. Models with the same endpoints have one lane. Needs that some of
// these endpoints do not meet have separate lanes, and so have long prompts if there are prefill engines.
func (s *Scheduler) laneName(snap *Snapshot, c *constraint) string {
	lane := s.servingLane(snap, c)
	if needs := s.needsOf(snap, c); needs != 0 {
		lane = joined(lane, needsLane+needs.String())
	}
	if s.isLong(snap, c) {
		lane = joined(lane, longLane)
	}
	return lane
}

// joined joins two parts of a lane's name, the first of which may be empty.
func joined(lane, part string) string {
	if lane == "" {
		return part
	}
	return lane + " " + part
}

// servingLane returns the name of the lane of short prompts.
func (s *Scheduler) servingLane(snap *Snapshot, c *constraint) string {
	byModel := s.filtersModel && c.model != "" && snap.listsModels
	confined := s.filtersSubset && c.confined
	switch {
	case !byModel && !confined:
		return ""
	case !byModel:
		return c.text
	case confined:
		return c.text + " " + snap.laneOf(c.model)
	default:
		return snap.laneOf(c.model)
	}
}

// subsetLane returns the name of the lane of a subset.
func subsetLane(entries []HostPort) string {
	var b strings.Builder
	b.WriteString(subsetPrefix)
	for i, entry := range entries {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(quoted(entry.String()))
	}
	return b.String()
}

const subsetPrefix = "subset="

// modelLane returns the name of the lane of the models whose first one is model.
func modelLane(model string) string { return "model=" + quoted(model) }

// unlistedLane is the lane of the models that no endpoint lists. No model's lane looks like it.
const unlistedLane = "model=*"

// quoted returns the text itself if it is plain, and Go syntax otherwise, so that no two texts look the same.
func quoted(text string) string {
	for i := range len(text) {
		switch c := text[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case c == '.', c == ':', c == '-', c == '_', c == '/', c == '[', c == ']', c == '@':
		default:
			return strconv.Quote(text)
		}
	}
	return text
}
