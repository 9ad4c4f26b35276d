package names

import (
	"strconv"

	"github.com/weir-epp/weir/internal/kubeapi"
	"github.com/weir-epp/weir/pkg/invalid"
)

// targetsOf returns the targets of a list, or adds its problems. A repeated target has the sum of its weights.
func targetsOf(ps *invalid.Problems, at invalid.Path, nameField string, list []kubeapi.TargetModel) []Target {
	var targets []Target
	places := make(map[string]int, len(list))
	for i, t := range list {
		checkName(ps, at.At(i, nameField), t.Name)
		weight, weightAt := 1, at.At(i, "weight")
		if (t.Weight == nil) != (list[0].Weight == nil) {
			ps.Add(weightAt, nil, "must be given for all targets or for none, as for the first")
		} else if t.Weight != nil {
			weight = int(*t.Weight)
			invalid.Within(ps, weightAt, weight, 1, MaxWeight)
		}
		place, again := places[t.Name]
		if !again {
			places[t.Name] = len(targets)
			targets = append(targets, Target{t.Name, weight})
			continue
		}
		if targets[place].Weight += weight; targets[place].Weight > MaxWeight {
			ps.Add(weightAt, weight, "must be at most %d together with the other weights of this target", MaxWeight)
		}
	}
	return targets
}

// checkTargetCount requires at most MaxTargets targets.
func checkTargetCount(ps *invalid.Problems, at invalid.Path, n int) bool {
	if n > MaxTargets {
		ps.Add(at, invalid.Shown(strconv.Itoa(n)+" targets"), "must be at most %d", MaxTargets)
	}
	return n <= MaxTargets
}

// checkName requires a name that is possible in a request.
func checkName(ps *invalid.Problems, at invalid.Path, name string) {
	switch {
	case name == "":
		ps.Add(at, name, "must be given")
	case len(name) > MaxNameBytes:
		ps.Add(at, invalid.Shown(strconv.Itoa(len(name))+" bytes"), "must be at most %d", MaxNameBytes)
	}
}
