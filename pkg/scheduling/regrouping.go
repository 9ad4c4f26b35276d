package scheduling

import (
	"maps"
	"slices"
	"strings"
)

// Regrouping maps the lanes of a snapshot to those of the next one. A lane is named for the first of its models. So
// models get another lane if their endpoints no longer equal those of the same other models, or if their lane was named
// for a model that has left it.
type Regrouping struct {
	all   bool                // any lane may have become any other
	heirs map[string][]string // by former lane: the present lanes of its models, ascending
}

// regroupingOf returns the regrouping from before to after; nil if each model keeps its lane.
func regroupingOf(before, after *Snapshot) *Regrouping {
	if before.listsModels != after.listsModels || before.reads != after.reads || lacksOtherwise(before, after) {
		return &Regrouping{all: true}
	}
	heirs := map[string][]string{}
	for model, m := range before.byModel {
		if now := after.laneOf(model); now != m.lane {
			heirs[m.lane] = nil
		}
	}
	for model, m := range after.byModel {
		if !before.Lists(model) {
			heirs[unlistedLane] = append(heirs[unlistedLane], m.lane)
		}
	}
	if len(heirs) == 0 {
		return nil
	}
	for model, m := range before.byModel {
		if of, changed := heirs[m.lane]; changed {
			heirs[m.lane] = append(of, after.laneOf(model))
		}
	}
	for lane, of := range heirs {
		if lane == unlistedLane {
			of = append(of, lane) // there are always other unlisted names
		}
		slices.Sort(of)
		heirs[lane] = slices.Compact(of)
	}
	return &Regrouping{heirs: heirs}
}

// lacksOtherwise reports whether lanes of needs may have changed their names or sets: a model's endpoints lack other
// needs than before. If none lacks anything, there are no such lanes.
func lacksOtherwise(before, after *Snapshot) bool {
	if before.lacked|after.lacked == 0 {
		return false
	}
	if before.whole.lacked != after.whole.lacked || before.anyModel.lacked != after.anyModel.lacked || len(before.byModel) != len(after.byModel) {
		return true
	}
	for model, m := range before.byModel {
		if now, listed := after.byModel[model]; !listed || now.lacked != m.lacked || now.lane != m.lane {
			return true
		}
	}
	return false
}

// regroupingSince returns the regrouping since another snapshot, or nil if there was none.
func (s *Snapshot) regroupingSince(before *Snapshot) *Regrouping {
	if s.since == before.mark {
		return s.regrouping
	}
	return regroupingOf(before, s)
}

// And returns this regrouping followed by another one; nil stands for none.
func (g *Regrouping) And(next *Regrouping) *Regrouping {
	switch {
	case next == nil:
		return g
	case g == nil:
		return next
	default:
		return &Regrouping{all: true}
	}
}

// Any reports whether any lane may have become any other.
func (g *Regrouping) Any() bool { return g.all }

// Heirs returns, for a changed lane, the lanes to which its requests belong now, possibly including itself. known is
// false if they may belong to any lane, and changed is false if the lane has not changed.
func (g *Regrouping) Heirs(lane string) (heirs []string, known, changed bool) {
	if g.all {
		return nil, false, true
	}
	serving, long := strings.CutSuffix(lane, " "+longLane)
	subset, models := splitLane(serving)
	heirs, changed = g.heirs[models]
	if !changed || subset == "" && !long {
		return heirs, true, changed
	}
	within := make([]string, 0, len(heirs))
	for _, heir := range heirs {
		if subset != "" {
			heir = subset + " " + heir
		}
		if long {
			heir += " " + longLane
		}
		within = append(within, heir)
	}
	return within, true, true
}

// Regrouped returns the known changed lanes without a subset, ascending.
func (g *Regrouping) Regrouped() []string {
	return slices.Sorted(maps.Keys(g.heirs))
}

// splitLane splits a lane's name into its subset and its models, which may each be "".
func splitLane(lane string) (subset, models string) {
	if !strings.HasPrefix(lane, subsetPrefix) {
		return "", lane
	}
	quoted := false
	for i := 0; i < len(lane); i++ {
		switch c := lane[i]; {
		case c == '"':
			quoted = !quoted
		case c == '\\' && quoted:
			i++
		case c == ' ' && !quoted:
			return lane[:i], lane[i+1:]
		}
	}
	return lane, ""
}

// TakeRegrouping returns the regrouping since the last call; nil if no lane has changed.
func (b *Board) TakeRegrouping() *Regrouping {
	g := b.regrouping
	b.regrouping = nil
	return g
}

// Lane returns the present name of the request's lane; "" is the whole pool. Equal names mean equal sets. It does not
// change the query.
func (b *Board) Lane(q *Query) string {
	if q.snap == b.snap && q.scheduler == b.scheduler {
		return q.lane
	}
	return b.scheduler.laneName(b.snap, &q.constraint)
}
