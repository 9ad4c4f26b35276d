package doctor

import (
	"fmt"
	"slices"
	"strings"

	aiv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ai_protocol_manager/v3"
	authzv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_authz/v3"
	jwtv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/jwt_authn/v3"
	metadatav3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/set_metadata/v3"
	overridev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/override_host/v3"

	"github.com/weir-epp/weir/pkg/extproc"
)

// Namespaces of metadata.
const (
	balancing   = "envoy.lb"             // the chosen endpoint, and the one that served
	subsetHint  = "envoy.lb.subset_hint" // the endpoints among which Weir may choose
	weirs       = "weir"                 // the name of a request for the gate, and the fields of the access log
	tokenUsage  = "envoy.ai.token_usage" // the usage of an answer
	requestInfo = "envoy.ai.request_info"
)

// metadataNotReceived checks the namespaces that Weir writes for Envoy.
func metadataNotReceived(e *Envoy, w Weir, report reporter) {
	gated := map[way]bool{}
	for _, g := range w.of(e, true) {
		gated[g.way()] = true
	}
	for _, u := range w.of(e, false) {
		received := u.config.GetMetadataOptions().GetReceivingNamespaces().GetUntyped()
		missing := func(namespace, why string) {
			if !slices.Contains(received, namespace) {
				report(u.at("metadata_options", "receiving_namespaces", "untyped"), fmt.Sprintf("%s lacks %s: %s", list(received), namespace, why),
					"receiving_namespaces: { untyped: "+list(append(slices.Clip(received), namespace))+" }")
			}
		}
		switch {
		case gated[u.way()]:
			missing(weirs, "the gate does not know the request")
		case w.Document.Responses.Metadata:
			missing(weirs, "the access log lacks Weir's decision (responses.metadata)")
		}
		if c := u.server(e); c.readsOnlyMetadata() {
			missing(balancing, "the cluster does not learn the destination")
		}
	}
}

// readsOnlyMetadata reports whether the cluster takes the destination only from metadata.
func (c *cluster) readsOnlyMetadata() bool {
	policy, _ := c.override()
	return policy != nil && len(c.destinationHeaders()) == 0 &&
		slices.ContainsFunc(policy.GetOverrideHostSources(), func(s *overridev3.OverrideHost_OverrideHostSource) bool { return s.GetMetadata().GetKey() == balancing })
}

// metadataNotForwarded checks the namespaces that Weir reads.
func metadataNotForwarded(e *Envoy, w Weir, report reporter) {
	for _, u := range w.of(e, true) {
		u.forwards(false, weirs, "Weir does not know whose answer the gate holds", report)
	}
	for _, u := range w.of(e, false) {
		c := u.server(e)
		if policy, _ := c.override(); policy.GetSelectedHostKey().GetKey() == balancing {
			u.forwards(false, balancing, "Weir does not learn which endpoint served", report)
		}
		published := u.published()
		if published[subsetHint] {
			u.forwards(false, subsetHint, "Weir does not know the subset", report)
		}
		wanted, own := w.namespaces()
		for _, s := range wanted {
			if own[s.name] || published[s.name] {
				u.forwards(false, s.name, s.key+" reads it", report)
			}
		}
		usage := w.Document.Usage == string(extproc.UsageAuto) || w.Document.Usage == string(extproc.UsageTrailers)
		if usage && w.Document.Cost != string(extproc.CostRequests) && c.readsUsage() {
			u.forwards(true, tokenUsage, "the usage that the cluster's filter reads does not reach Weir", report)
		}
		if u.readBefore() {
			u.forwards(true, requestInfo, "what the filter before reads of requests does not reach Weir", report)
		}
	}
}

// forwards reports a namespace unless the filter sends it to Weir.
func (u use) forwards(typed bool, namespace, why string, report reporter) {
	sent, kind := u.config.GetMetadataOptions().GetForwardingNamespaces().GetUntyped(), "untyped"
	if typed {
		sent, kind = u.config.GetMetadataOptions().GetForwardingNamespaces().GetTyped(), "typed"
	}
	if !slices.Contains(sent, namespace) {
		report(u.at("metadata_options", "forwarding_namespaces", kind), fmt.Sprintf("%s lacks %s: %s", list(sent), namespace, why),
			fmt.Sprintf("forwarding_namespaces: { %s: %s }", kind, list(append(slices.Clip(sent), namespace))))
	}
}

// published returns the namespaces that filters before this one fill.
func (u use) published() map[string]bool {
	all := map[string]bool{}
	for _, f := range u.manager.filters[:u.place] {
		overrides, off := u.route.of(f)
		if off {
			continue
		}
		configs := []any{f.config}
		for _, o := range overrides {
			configs = append(configs, o.config)
		}
		for _, config := range configs {
			switch config := config.(type) {
			case *jwtv3.JwtAuthentication:
				for _, p := range config.GetProviders() {
					if p.GetPayloadInMetadata() != "" {
						all["envoy.filters.http.jwt_authn"] = true
					}
				}
			case *authzv3.ExtAuthz:
				all["envoy.filters.http.ext_authz"] = true
			case *metadatav3.Config:
				for _, m := range config.GetMetadata() {
					all[m.GetMetadataNamespace()] = true
				}
			}
		}
	}
	return all
}

// readsUsage reports whether a filter of the cluster reads the usage of answers.
func (c *cluster) readsUsage() bool {
	return c != nil && slices.ContainsFunc(c.filters, func(f *filter) bool {
		config, ok := f.config.(*aiv3.AiProtocolManager)
		return ok && !f.disabled && config.GetResponseHandling().GetTokenUsage() != nil
	})
}

// list returns names as a list of YAML.
func list(names []string) string { return "[" + strings.Join(names, ", ") + "]" }
