package config

import (
	"cmp"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/weir-epp/weir/internal/spelling"
	"github.com/weir-epp/weir/pkg/extproc"
	"github.com/weir-epp/weir/pkg/quota"
	"github.com/weir-epp/weir/pkg/request"
)

// longestHold is the longest that Envoy holds a request, and so the longest time in the queue.
const longestHold = Duration(extproc.LongestHold)

// problems returns those of every key: from the rules that no package has, and from the packages.
func (d Document) problems() Problems {
	var ps Problems
	if d.APIVersion != APIVersion {
		ps.add("apiVersion", d.APIVersion, "must be %s", APIVersion)
	}
	if d.Kind != Kind {
		ps.add("kind", d.Kind, "must be %s", Kind)
	}
	ps.oneOf("profile", d.Profile, Profiles())
	d.wordProblems(&ps)
	d.holdProblems(&ps)
	d.classProblems(&ps)
	d.tenantProblems(&ps)
	d.levelProblems(&ps)
	d.quotaProblems(&ps)
	return append(ps, d.problemsOfParts()...)
}

// wordProblems checks the words that conversion turns into enumerations. A word that is empty by default may be so.
func (d Document) wordProblems(ps *Problems) {
	for k, byDefault := range tagged("default") {
		known := enumerations[k.path]
		if known == nil {
			continue
		}
		each(reflect.ValueOf(d), k.path, nil, func(elements []any, v reflect.Value) {
			if v.String() != "" || byDefault != "''" {
				ps.oneOf(pathText(pathOf(k.path, elements)), v.String(), known.words())
			}
		})
	}
}

// holdProblems checks the times for which Envoy would have to hold a request, and those of the drain.
func (d Document) holdProblems(ps *Problems) {
	ps.hold("fairRequestQueue.queueTTL", d.FairRequestQueue.QueueTTL)
	for i, t := range d.Tiers {
		if t.QueueTimeout != nil {
			ps.hold(index("tiers", i)+".queueTimeout", *t.QueueTimeout)
		}
	}
	c := d.RequestQueueController
	const at = "requestQueueController."
	if Within(ps, at+"drainWindow", c.DrainWindow, 0, longestHold) && c.MinDrain > c.DrainWindow {
		ps.add(at+"minDrain", c.MinDrain, "must be at most drainWindow (%s)", c.DrainWindow)
	}
	atLeast(ps, at+"minDrain", c.MinDrain, 0)
}

// hold checks that Envoy holds a request for that long. The queue checks that the time is above 0.
func (ps *Problems) hold(path string, d Duration) {
	if d > longestHold {
		ps.add(path, d, "must be above 0s and at most %s", longestHold)
	}
}

// classProblems checks the names of the classes; the queue checks the rest.
func (d Document) classProblems(ps *Problems) {
	for i, c := range d.Classes {
		if strings.ContainsFunc(c.Name, func(r rune) bool {
			return !strings.ContainsRune("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-", r)
		}) {
			ps.add(index("classes", i)+".name", c.Name, "must consist of letters, digits, '_', '.' and '-'")
		}
	}
}

// tenantProblems checks for names that no tenant can have.
func (d Document) tenantProblems(ps *Problems) {
	for _, tenant := range slices.Sorted(maps.Keys(d.TenantPolicies)) {
		if tenant == request.OtherTenants || tenant == "" {
			ps.add(join("tenantPolicies", tenant), tenant, "must be a tenant's identity; criticality.maxClass is for the "+
				"tenants that have no policy")
		}
	}
}

// levelProblems checks that nothing is given both for flows and for their levels.
func (d Document) levelProblems(ps *Problems) {
	if len(d.Flows.Levels) == 0 {
		return
	}
	if n := len(d.Flows.Levels); n > 1 && d.Flows.Discipline == DisciplineNone {
		ps.add("flows.levels", n, "must be one level with discipline none, which knows no flows")
	}
	const want = "must not be given beside levels, each of which has its own"
	if n := len(d.Flows.Weights); n > 0 {
		ps.add("flows.weights", n, want)
	}
	if n := len(d.Flows.Capacities); n > 0 {
		ps.add("flows.capacities", n, want)
	}
}

// quotaProblems checks that the tokens of requests are known where tenants have quotas.
func (d Document) quotaProblems(ps *Problems) {
	for path, tokens := range d.quotas() {
		if tokens <= quota.MaxTokens && d.Cost != string(extproc.CostTokens) {
			ps.add(path, tokens, "needs cost: %s", extproc.CostTokens)
		}
	}
}

// quotas iterates over the paths and the tokens of all quotas.
func (d *Document) quotas() iter.Seq2[string, int64] {
	return func(yield func(string, int64) bool) {
		for _, tenant := range slices.Sorted(maps.Keys(d.TenantPolicies)) {
			if n := d.TenantPolicies[tenant].Quota.Tokens; n > 0 && !yield(join("tenantPolicies", tenant)+".quota.tokens", n) {
				return
			}
		}
		for _, role := range slices.Sorted(maps.Keys(d.Roles)) {
			if n := d.Roles[role].Quota.Tokens; n > 0 && !yield(join("roles", role)+".quota.tokens", n) {
				return
			}
		}
	}
}

// hasQuotas reports whether any tenant has a quota.
func (d *Document) hasQuotas() bool {
	for range d.quotas() {
		return true
	}
	return false
}

// oneOf checks that a word is a known one.
func (ps *Problems) oneOf(path, word string, known []string) {
	if !slices.Contains(known, word) {
		ps.add(path, word, "must be one of %s%s", strings.Join(known, ", "), spelling.Suggest(word, known))
	}
}

func atLeast[T cmp.Ordered](ps *Problems, path string, value, least T) bool {
	if value < least {
		ps.add(path, value, "must be at least %v", least)
		return false
	}
	return true
}

// Within requires a value from least to most, both included. It reports whether the value is valid.
func Within[T cmp.Ordered](ps *Problems, path string, value, least, most T) bool {
	if value < least || value > most {
		ps.add(path, value, "must be from %v to %v", least, most)
		return false
	}
	return true
}
