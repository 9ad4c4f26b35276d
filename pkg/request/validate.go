package request

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-epp/weir/pkg/invalid"
)

const (
	// Every request has a slot for each of these headers.
	maxSources          = 16
	maxDeadlineHeaders  = 16
	maxObjectiveHeaders = 4

	maxTargetWeight = 1_000_000
	// maxBody is the largest gRPC message with a body, in bytes.
	maxBody = 1 << 30
	// longestBodyTimeout is the longest time that Envoy holds a request.
	longestBodyTimeout = time.Hour
)

// Validate reports every problem at once, as invalid.Problems.
func (c *Config) Validate() error {
	var ps invalid.Problems
	c.checkFlowKey(&ps)
	c.checkRoles(&ps)
	c.checkTiers(&ps)
	c.checkModels(&ps)
	c.checkCriticality(&ps)
	c.PolicyClass.check(&ps, invalid.At("PolicyClass"))
	c.checkRings(&ps)
	checkOptionalHeader(&ps, invalid.At("TrustedHeaders", "Model"), c.TrustedHeaders.Model)
	checkOptionalHeader(&ps, invalid.At("TrustedHeaders", "Cost"), c.TrustedHeaders.Cost)
	checkOptionalHeader(&ps, invalid.At("TrustedHeaders", "InputTokens"), c.TrustedHeaders.InputTokens)
	checkOptionalHeader(&ps, invalid.At("TrustedHeaders", "Requirements"), c.TrustedHeaders.Requirements)
	for i, name := range c.DeadlineHeaders {
		checkHeader(&ps, invalid.At("DeadlineHeaders", i), name)
	}
	checkCount(&ps, invalid.At("DeadlineHeaders"), len(c.DeadlineHeaders), "headers", maxDeadlineHeaders)
	oneOf(&ps, invalid.At("RequestBody"), c.RequestBody, BodyAuto, BodyAlways, BodyNever)
	oneOf(&ps, invalid.At("UnknownModels"), c.UnknownModels, UnknownModelsOwn, UnknownModelsShared)
	oneOf(&ps, invalid.At("Anonymous"), c.Anonymous, AnonymousModel, AnonymousShared)
	if c.Anonymous == AnonymousShared && !slices.ContainsFunc(c.flowKey(), func(source string) bool { return source != "model" }) {
		ps.Add(invalid.At("Anonymous"), string(c.Anonymous), "needs another source in %s than model: no request would have an identity",
			invalid.At("FlowKey"))
	}
	oneOf(&ps, invalid.At("PassOn"), c.PassOn, PassOnPick, PassOnQueue)
	var paths invalid.Names
	for i, path := range c.PassOnPaths {
		at := invalid.At("PassOnPaths", i)
		if paths.Check(&ps, at, path) && (path[0] != '/' || strings.ContainsAny(path, "?#")) {
			ps.Add(at, path, "must be a path as clients send it: from its first slash, without the query")
		}
	}
	var explainers invalid.Names
	for i, tenant := range c.Explain {
		explainers.Check(&ps, invalid.At("Explain", i), tenant)
	}
	c.Affinity.check(&ps)
	c.Limits.check(&ps, invalid.At("Limits"))
	return ps.Err()
}

// checkFlowKey checks the sources of flows' keys.
func (c *Config) checkFlowKey(ps *invalid.Problems) {
	var sources invalid.Names
	check := func(at invalid.Path, key []string) {
		if len(key) == 0 {
			ps.Add(at, invalid.Shown("[]"), "must name at least one source")
		}
		checkCount(ps, at, len(key), "sources", maxSources)
		for i, text := range key {
			if sources.Check(ps, at.At(i), text) {
				checkSource(ps, at.At(i), text)
			}
		}
	}
	if len(c.Levels) == 0 {
		check(invalid.At("FlowKey"), c.FlowKey)
		return
	}
	at := invalid.At("Levels")
	if n := len(c.Levels); n > maxLevels {
		ps.Add(at, invalid.Shown(fmt.Sprintf("%d levels", n)), "must be at most %d: tenants and their users", maxLevels)
	}
	if len(c.FlowKey) > 0 {
		ps.Add(invalid.At("FlowKey"), strings.Join(c.FlowKey, ", "), "must not be given beside %s, each of which has its own", at)
	}
	for i, l := range c.Levels {
		check(at.At(i, "Key"), l.Key)
		if at := slices.Index(l.Key, sourceModel); i > 0 && at >= 0 {
			ps.Add(invalid.At("Levels", i, "Key", at), sourceModel, "must be header:NAME, metadata:NAMESPACE/PATH or attribute:NAME")
		}
	}
}

// maxLevels is the largest number of levels of flows.
const maxLevels = 2

// flowKey returns the sources of the flow's key.
func (c *Config) flowKey() []string {
	if len(c.Levels) > 0 {
		return c.Levels[0].Key
	}
	return c.FlowKey
}

// userKey returns the sources of the key of the tenant's user; none if tenants have no users.
func (c *Config) userKey() []string {
	if len(c.Levels) > 1 {
		return c.Levels[1].Key
	}
	return nil
}

// checkRoles checks the sources of roles, and the tiers of each.
func (c *Config) checkRoles(ps *invalid.Problems) {
	at := invalid.At("RoleSources")
	checkCount(ps, at, len(c.RoleSources), "sources", maxSources)
	var sources invalid.Names
	for i, text := range c.RoleSources {
		if !sources.Check(ps, at.At(i), text) {
			continue
		}
		if checkSource(ps, at.At(i), text); text == sourceModel {
			ps.Add(at.At(i), text, "must be header:NAME, metadata:NAMESPACE/PATH or attribute:NAME")
		}
	}
	flows := invalid.At("FlowKey")
	if len(c.Levels) > 0 {
		flows = invalid.At("Levels")
	}
	keys := slices.Concat(c.flowKey(), c.userKey())
	if n := headersOf(keys); n > maxSources { // counts all levels together
		ps.Add(flows, invalid.Shown(strconv.Itoa(n)+" headers"), "must be at most %d", maxSources)
	} else if n := headersOf(slices.Concat(keys, c.RoleSources)); len(c.RoleSources) > 0 && n > maxSources {
		ps.Add(at, invalid.Shown(strconv.Itoa(n)+" headers"), "must be at most %d, together with those of %s", maxSources, flows)
	}
	names := slices.Sorted(maps.Keys(c.Roles))
	if c.DefaultRole != "" {
		invalid.OneOf(ps, invalid.At("DefaultRole"), c.DefaultRole, names)
	}
	for _, role := range names {
		r, at := c.Roles[role], invalid.At("Roles", invalid.Key(role))
		for _, tier := range []struct{ field, name string }{{"Class", r.Class}, {"MaxClass", r.MaxClass}} {
			if tier.name != "" {
				invalid.OneOf(ps, at.At(tier.field), tier.name, tierWords(c.Tiers))
			}
		}
	}
}

// headersOf returns the number of headers that sources name.
func headersOf(sources []string) int {
	names := make(map[string]bool)
	for _, text := range sources {
		if s, bad := parseSource(text); bad == nil && s.kind == fromHeader {
			names[strings.ToLower(s.name)] = true
		}
	}
	return len(names)
}

// checkTiers checks the order of the tiers; the queue owns the tiers and checks the rest.
func (c *Config) checkTiers(ps *invalid.Problems) {
	if len(c.Tiers) == 0 {
		ps.Add(invalid.At("Tiers"), invalid.Shown("[]"), "must have at least one tier")
	}
	var above *int
	for i, t := range c.Tiers {
		if t.MinPriority == nil {
			continue
		}
		if above != nil && *t.MinPriority >= *above {
			ps.Add(invalid.At("Tiers", i, "MinPriority"), *t.MinPriority, "must be below that of the tiers above (%d)", *above)
		}
		above = t.MinPriority
	}
}

func (c *Config) checkModels(ps *invalid.Problems) {
	var models, objectives invalid.Names
	for i, m := range c.Models {
		at := invalid.At("Models", i)
		models.Check(ps, at.At("Name"), m.Name)
		if m.Criticality != "" {
			invalid.OneOf(ps, at.At("Criticality"), m.Criticality, tierWords(c.Tiers))
		}
		checkTargets(ps, at.At("Targets"), m.Targets)
	}
	checkTargets(ps, invalid.At("OtherTargets"), c.OtherTargets)
	for i, o := range c.Objectives {
		objectives.Check(ps, invalid.At("Objectives", i, "Name"), o.Name)
	}
}

func checkTargets(ps *invalid.Problems, at invalid.Path, targets []Target) {
	var names invalid.Names
	for i, t := range targets {
		names.Check(ps, at.At(i, "Name"), t.Name)
		invalid.Within(ps, at.At(i, "Weight"), t.Weight, 1, maxTargetWeight)
	}
}

func (c *Config) checkCriticality(ps *invalid.Problems) {
	at := invalid.At("Criticality")
	invalid.OneOf(ps, at.At("Default"), c.Criticality.Default, tierWords(c.Tiers))
	for _, tenant := range slices.Sorted(maps.Keys(c.TenantPolicies)) {
		p, at := c.TenantPolicies[tenant], invalid.At("TenantPolicies", invalid.Key(tenant))
		if p.Class != "" {
			invalid.OneOf(ps, at.At("Class"), p.Class, tierWords(c.Tiers))
		}
		if p.Role != "" {
			invalid.OneOf(ps, at.At("Role"), p.Role, slices.Sorted(maps.Keys(c.Roles)))
		}
		if p.MaxClass != "" || p.Class == "" && p.Role == "" {
			invalid.OneOf(ps, at.At("MaxClass"), p.MaxClass, tierWords(c.Tiers))
		}
	}
	checkOptionalHeader(ps, at.At("Header"), c.Criticality.Header)
	if m := c.Criticality.Metadata; m != "" {
		checkSource(ps, at.At("Metadata"), metadataSource+m)
	}
	at = at.At("ObjectiveHeaders")
	checkCount(ps, at, len(c.Criticality.ObjectiveHeaders), "headers", maxObjectiveHeaders)
	var names invalid.Names
	for i, name := range c.Criticality.ObjectiveHeaders {
		if checkHeader(ps, at.At(i), name) {
			names.Check(ps, at.At(i), strings.ToLower(name))
		}
	}
}

func (l *Limits) check(ps *invalid.Problems, at invalid.Path) {
	body := at.At("MaxBodyBytes")
	switch n := l.MaxBodyBytes; {
	case !invalid.AtLeast(ps, body, n, 1):
	case n > maxBody:
		ps.Add(body, n, "must be at most %d (1 GiB)", maxBody)
	case n > l.MaxBodyBytesTotal && l.MaxBodyBytesTotal >= 1:
		ps.Add(body, n, "must be at most %s (%d)", at.At("MaxBodyBytesTotal"), l.MaxBodyBytesTotal)
	}
	invalid.AtLeast(ps, at.At("MaxBodyBytesTotal"), l.MaxBodyBytesTotal, 1)
	if l.BodyTimeout <= 0 || l.BodyTimeout > longestBodyTimeout {
		ps.Add(at.At("BodyTimeout"), l.BodyTimeout, "must be above %s and at most %s", time.Duration(0), longestBodyTimeout)
	}
	invalid.AtLeast(ps, at.At("MaxHeaderBytes"), l.MaxHeaderBytes, 1)
	invalid.AtLeast(ps, at.At("MaxHeaders"), l.MaxHeaders, 1)
}

// checkHeader checks that name is a header name (an HTTP token: RFC 9110, section 5.6.2), and reports whether it is.
func checkHeader(ps *invalid.Problems, at invalid.Path, name string) bool {
	if !isHeaderName(name) {
		ps.Add(at, name, "must be the name of a header")
		return false
	}
	return true
}

// isHeaderName reports whether s is a token.
func isHeaderName(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		return !letter && !strings.ContainsRune("!#$%&'*+-.^_`|~", r)
	})
}

// checkOptionalHeader checks that name is a header name or empty.
func checkOptionalHeader(ps *invalid.Problems, at invalid.Path, name string) {
	if name != "" {
		checkHeader(ps, at, name)
	}
}

func checkSource(ps *invalid.Problems, at invalid.Path, text string) {
	if _, bad := parseSource(text); bad != nil {
		ps.Add(at, bad.part, "must %s", bad.want)
	}
}

func checkCount(ps *invalid.Problems, at invalid.Path, n int, what string, most int) {
	if n > most {
		ps.Add(at, invalid.Shown(strconv.Itoa(n)+" "+what), "must be at most %d", most)
	}
}

// oneOf is invalid.OneOf for words of a type of their own.
func oneOf[T ~string](ps *invalid.Problems, at invalid.Path, word T, known ...T) {
	words := make([]string, len(known))
	for i, k := range known {
		words[i] = string(k)
	}
	invalid.OneOf(ps, at, string(word), words)
}
