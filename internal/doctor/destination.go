package doctor

import (
	"fmt"
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	overridev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/override_host/v3"
)

// override returns the cluster's policy that reads Weir's choice, and the policy's place; nil if there is none.
func (c *cluster) override() (*overridev3.OverrideHost, Path) {
	if c == nil {
		return nil, nil
	}
	for i, p := range c.config.GetLoadBalancingPolicy().GetPolicies() {
		if policy, ok := opened(p.GetTypedExtensionConfig().GetTypedConfig()).(*overridev3.OverrideHost); ok {
			return policy, c.at.add("load_balancing_policy", "policies", i, "typed_extension_config", "typed_config")
		}
	}
	return nil, nil
}

// destinationHeaders returns the request headers that choose a server in the cluster, in lower case.
func (c *cluster) destinationHeaders() []string {
	if c == nil {
		return nil
	}
	if name := c.originalHeader(); name != "" {
		return []string{name}
	}
	var names []string
	policy, _ := c.override()
	for _, s := range policy.GetOverrideHostSources() {
		if s.GetHeader() != "" {
			names = append(names, strings.ToLower(s.GetHeader()))
		}
	}
	return names
}

// originalFailsOpen checks the filters in front of clusters that connect to any address.
func originalFailsOpen(e *Envoy, w Weir, report reporter) {
	for _, u := range w.of(e, false) {
		if c := u.server(e); c != nil && c.originalHeader() != "" && u.config.GetFailureModeAllow() {
			report(u.at("failure_mode_allow"), "true, before cluster "+c.config.GetName()+" of type ORIGINAL_DST", "failure_mode_allow: false")
		}
	}
}

// originalFallbacks checks that a cluster for single addresses gets single addresses.
func originalFallbacks(e *Envoy, w Weir, report reporter) {
	n := w.Document.Scheduling.Fallbacks
	for _, c := range w.servers(e) {
		if c.originalHeader() != "" && n > 0 {
			report(c.at.add("type"), fmt.Sprintf("ORIGINAL_DST, and scheduling.fallbacks %d", n), "scheduling: { fallbacks: 0 } (of Weir)")
		}
	}
}

// walking are the retry conditions that make Envoy try the next endpoint of a list if the first refuses connections.
var walking = []string{"connect-failure", "5xx", "gateway-error", "reset", "reset-before-request"}

// retryPolicy checks that routes have retries if Weir names lists for them: by retries Envoy walks the list.
func retryPolicy(e *Envoy, w Weir, report reporter) {
	if w.Document.Scheduling.Fallbacks == 0 {
		return
	}
	for _, u := range w.of(e, false) {
		c := u.server(e)
		if policy, _ := c.override(); policy == nil || u.route.walks(c) {
			continue
		}
		report(u.route.at.add("route", "retry_policy"), fmt.Sprintf("no retries on connect-failure, and scheduling.fallbacks %d",
			w.Document.Scheduling.Fallbacks), fmt.Sprintf("retry_policy: { retry_on: \"connect-failure,refused-stream,reset-before-request\", "+
			"num_retries: %d }", w.Document.Scheduling.Fallbacks))
	}
}

// walks reports whether a failed connection is tried again elsewhere.
func (r *route) walks(c *cluster) bool {
	action := r.config.GetRoute()
	if action.GetRetryPolicyTypedConfig() != nil || r.host.GetRetryPolicyTypedConfig() != nil {
		return true // not known
	}
	for _, p := range []*routev3.RetryPolicy{action.GetRetryPolicy(), r.host.GetRetryPolicy(), c.options.GetRetryPolicy()} {
		if p == nil {
			continue
		}
		if p.GetNumRetries() != nil && p.GetNumRetries().GetValue() == 0 {
			return false
		}
		return slices.ContainsFunc(strings.Split(p.GetRetryOn(), ","), func(on string) bool {
			return slices.Contains(walking, strings.TrimSpace(on))
		})
	}
	return false
}

// pools returns the clusters whose endpoints Weir picks from, if all their addresses are known.
func (w Weir) pools(e *Envoy) []*cluster {
	var all []*cluster
	for _, c := range w.servers(e) {
		if policy, _ := c.override(); policy == nil {
			continue
		}
		if !c.resolved {
			return nil
		}
		all = append(all, c)
	}
	return all
}

// endpointsOnlyInWeir checks that Envoy knows all endpoints of Weir.
func endpointsOnlyInWeir(e *Envoy, w Weir, report reporter) {
	pools := w.pools(e)
	if w.Endpoints == nil || len(pools) == 0 {
		return
	}
	missing := addresses(w.Endpoints)
	for unnamed := range addresses(w.Unnamed) {
		delete(missing, unnamed)
	}
	for _, c := range pools {
		for _, own := range c.endpoints {
			delete(missing, own.address)
		}
	}
	if len(missing) > 0 {
		c := pools[0]
		at := c.listedAt
		if len(c.endpoints) > 0 {
			at = c.endpoints[0].at[:len(c.endpoints[0].at)-1]
		}
		names := listed(missing)
		report(at, "lacks "+names, "lb_endpoints: "+names)
	}
}

// endpointsOnlyInEnvoy checks that Weir knows all endpoints of Envoy.
func endpointsOnlyInEnvoy(e *Envoy, w Weir, report reporter) {
	if w.Endpoints == nil {
		return
	}
	known := addresses(w.Endpoints)
	for _, c := range w.pools(e) {
		for _, own := range c.endpoints {
			if !known[own.address] && own.health != corev3.HealthStatus_DRAINING { // a draining one is about to leave
				report(own.at, own.address+", which Weir lacks", "--endpoints="+own.address+" (of Weir, beside the others)")
			}
		}
	}
}

// longestList is the largest number of addresses in a finding.
const longestList = 10

// listed returns the first names of a set, in order, and the number of further ones.
func listed(set map[string]bool) string {
	var names []string
	for name := range set {
		names = append(names, name)
	}
	slices.Sort(names)
	if more := len(names) - longestList; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:longestList], ", "), more)
	}
	return strings.Join(names, ", ")
}
