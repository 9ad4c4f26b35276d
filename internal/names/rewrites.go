package names

import (
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-epp/weir/internal/kubeapi"
	"github.com/weir-epp/weir/pkg/invalid"
)

const matchExact = "Exact"

// rule is a rewrite's rule for a model.
type rule struct {
	targets []Target
	from    Origin
}

// readRewrites reads the rules of all rewrites of the pool and judges these.
func (c *cluster) readRewrites(n *Names, list []*kubeapi.InferenceModelRewrite) {
	meta := func(r *kubeapi.InferenceModelRewrite) *metav1.ObjectMeta { return &r.ObjectMeta }
	ours := func(r *kubeapi.InferenceModelRewrite) bool { return c.pool.has(r.Spec.PoolRef) }
	for _, r := range oldestFirst(list, meta, ours) {
		rules, ps := rulesOf(r)
		switch {
		case len(ps) > 0:
			n.judgeInvalid(KindRewrite, &r.ObjectMeta, ps)
		case !c.addRules(r, rules):
			n.judge(KindRewrite, &r.ObjectMeta, ReasonTooManyNames, tooMany("models"))
		default:
			n.judge(KindRewrite, &r.ObjectMeta, ReasonAccepted, "its rules are in use")
		}
	}
}

// rulesOf returns the targets of each rule, or the problems of the resource.
func rulesOf(r *kubeapi.InferenceModelRewrite) (rules [][]Target, ps invalid.Problems) {
	for i, rule := range r.Spec.Rules {
		at := invalid.At("spec", "rules", i)
		for j, match := range rule.Matches {
			at := at.At("matches", j, "model")
			if match.Model.Type != "" {
				invalid.OneOf(&ps, at.At("type"), match.Model.Type, []string{matchExact})
			}
			if checkName(&ps, at.At("value"), match.Model.Value); len(ps) > maxProblems {
				break
			}
		}
		rules = append(rules, targetsOfRule(&ps, at.At("targets"), rule.Targets))
		if len(ps) > maxProblems {
			break
		}
	}
	return rules, ps
}

func targetsOfRule(ps *invalid.Problems, at invalid.Path, list []kubeapi.RewriteTarget) []Target {
	if len(list) == 0 {
		ps.Add(at, invalid.Shown("[]"), "must have at least one target")
	}
	if !checkTargetCount(ps, at, len(list)) {
		return nil
	}
	targets := make([]kubeapi.TargetModel, len(list))
	for i, t := range list {
		targets[i] = kubeapi.TargetModel{Name: t.ModelRewrite, Weight: t.Weight}
	}
	return targetsOf(ps, at, "modelRewrite", targets)
}

// addRules adds the rules of a rewrite after those of older ones, unless they would name too many models.
func (c *cluster) addRules(r *kubeapi.InferenceModelRewrite, rules [][]Target) bool {
	from := Origin{KindRewrite, r.Name}
	fresh := map[string]rule{}
	others := c.others
	for i, spec := range r.Spec.Rules {
		if len(spec.Matches) == 0 && len(others.targets) == 0 {
			others = rule{rules[i], from}
		}
		for _, match := range spec.Matches {
			name := match.Model.Value
			_, older := c.rules[name]
			if _, earlier := fresh[name]; older || earlier {
				continue
			}
			if fresh[name] = (rule{rules[i], from}); len(c.rules)+len(fresh) > MaxNames {
				return false
			}
		}
	}
	maps.Copy(c.rules, fresh)
	c.others = others
	return true
}
