package names

import (
	"fmt"
	"maps"
	"slices"

	"github.com/weir-epp/weir/internal/kubeapi"
)

// Resources are the resources of the pool's namespace, each kind from one group, in any order. Merge does not change
// them.
type Resources struct {
	Objectives []*kubeapi.InferenceObjective
	Rewrites   []*kubeapi.InferenceModelRewrite
	Models     []*kubeapi.InferenceModel
}

// Merge returns the names of the file and the resources of a pool. It ignores the origins of the file's names.
func Merge(file File, pool Pool, r Resources) Names {
	var n Names
	n.Objectives = n.mergeObjectives(file.Objectives, pool, r.Objectives)
	models := cluster{pool: pool, inFile: map[string]bool{}, rules: map[string]rule{}, models: map[string]Model{}}
	for _, m := range file.Models {
		models.inFile[m.Name] = true
		m.CriticalityFrom, m.TargetsFrom = Origin{Kind: KindFile}, Origin{Kind: KindFile}
		n.Models = append(n.Models, m)
	}
	models.readRewrites(&n, r.Rewrites)
	models.readModels(&n, r.Models)
	n.Models = append(n.Models, models.join()...)
	n.OtherTargets, n.OtherTargetsFrom = models.others.targets, models.others.from
	return n
}

// cluster is the content of the cluster's resources about models.
type cluster struct {
	pool   Pool
	inFile map[string]bool
	rules  map[string]rule  // of rewrites, by matched model
	others rule             // of rewrites, for every model; without targets: none
	models map[string]Model // of InferenceModels
}

// join returns the models named by resources only, by name.
func (c *cluster) join() []Model {
	for name, rule := range c.rules {
		m := c.models[name]
		m.Name, m.Targets, m.TargetsFrom = name, rule.targets, rule.from
		c.models[name] = m
	}
	var models []Model
	for _, name := range slices.Sorted(maps.Keys(c.models)) {
		m := c.models[name]
		if _, matched := c.rules[name]; !matched && len(c.others.targets) > 0 {
			m.Targets, m.TargetsFrom = c.others.targets, c.others.from
		}
		if !c.inFile[name] {
			models = append(models, m)
		}
	}
	return models
}

func tooMany(what string) string {
	return fmt.Sprintf("older resources of the pool name so many %s that this one would exceed %d", what, MaxNames)
}
