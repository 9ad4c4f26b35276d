package doctor

import (
	"fmt"
	"strings"

	mutationv3 "github.com/envoyproxy/go-control-plane/envoy/config/common/mutation_rules/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	apikeyv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/api_key_auth/v3"
	basicv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/basic_auth/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	headerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/header_mutation/v3"
	jwtv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/jwt_authn/v3"
	earlyv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/http/early_header_mutation/header_mutation/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
)

// clientDestination checks the headers that choose a server, on routes whose filter fails open. In fail-closed mode
// Weir overwrites them in every request.
func clientDestination(e *Envoy, w Weir, report reporter) {
	for _, u := range w.of(e, false) {
		if !u.config.GetFailureModeAllow() {
			continue
		}
		for _, name := range u.server(e).destinationHeaders() {
			if !u.guards(name) {
				report(u.guard(), fmt.Sprintf("a client's %s stays", name), removal(name))
			}
		}
	}
}

// clientIdentity checks the headers named by Weir's configuration. If the filter shows no bodies, the model may come
// from a hop before this Envoy.
func clientIdentity(e *Envoy, w Weir, report reporter) {
	for _, u := range w.of(e, false) {
		mode := u.config.GetProcessingMode().GetRequestBodyMode()
		noBody := mode == extprocv3.ProcessingMode_NONE && !u.config.GetAllowModeOverride()
		for _, s := range w.headers() {
			if s.key == "trustedHeaders.model" && noBody || u.guards(s.name) {
				continue
			}
			report(u.guard(), fmt.Sprintf("a client's %s stays, and %s names it", s.name, s.key), removal(s.name))
		}
	}
}

func removal(name string) string { return fmt.Sprintf("request_mutations: [{ remove: %s }]", name) }

// guard returns the place for removing a header: the mutations before the filter, or the filter itself.
func (u use) guard() Path {
	for _, f := range u.manager.filters[:u.place] {
		if _, ok := f.config.(*headerv3.HeaderMutation); ok {
			return f.at.add("typed_config", "mutations", "request_mutations")
		}
	}
	return u.filter.at
}

// guards reports whether something before the filter removes or overwrites a client's header of this name, in lower
// case.
func (u use) guards(name string) bool {
	for _, early := range u.manager.config.GetEarlyHeaderMutationExtensions() {
		if m, ok := opened(early.GetTypedConfig()).(*earlyv3.HeaderMutation); ok && takesAway(m.GetMutations(), name) {
			return true
		}
	}
	for _, f := range u.manager.filters[:u.place] {
		overrides, off := u.route.of(f)
		if off {
			continue
		}
		if replaces(f.config, name) {
			return true
		}
		for _, o := range overrides {
			if own, ok := o.config.(*headerv3.HeaderMutationPerRoute); ok && takesAway(own.GetMutations().GetRequestMutations(), name) {
				return true
			}
		}
	}
	return false
}

// replaces reports whether a filter removes a client's header, or replaces it by a verified value.
func replaces(config any, name string) bool {
	is := func(header string) bool { return strings.EqualFold(header, name) }
	switch config := config.(type) {
	case *headerv3.HeaderMutation:
		return takesAway(config.GetMutations().GetRequestMutations(), name)
	case *apikeyv3.ApiKeyAuth:
		return is(config.GetForwarding().GetHeader())
	case *basicv3.BasicAuth:
		return is(config.GetForwardUsernameHeader())
	case *jwtv3.JwtAuthentication:
		for _, p := range config.GetProviders() {
			if is(p.GetForwardPayloadHeader()) {
				return true
			}
			for _, claim := range p.GetClaimToHeaders() {
				if is(claim.GetHeaderName()) {
					return true
				}
			}
		}
	}
	return false
}

// takesAway reports whether mutations remove or overwrite a header.
func takesAway(mutations []*mutationv3.HeaderMutation, name string) bool {
	for _, m := range mutations {
		set := m.GetAppend()
		switch {
		case strings.EqualFold(m.GetRemove(), name), matches(m.GetRemoveOnMatch().GetKeyMatcher(), name):
			return true
		case set != nil && strings.EqualFold(set.GetHeader().GetKey(), name) &&
			set.GetAppendAction() == corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD:
			return true
		}
	}
	return false
}

// matches reports whether a matcher without a regular expression matches a header's name.
func matches(m *matcherv3.StringMatcher, name string) bool {
	lower := func(s string) string {
		if m.GetIgnoreCase() {
			return strings.ToLower(s)
		}
		return s
	}
	switch p := m.GetMatchPattern().(type) {
	case *matcherv3.StringMatcher_Exact:
		return lower(p.Exact) == name
	case *matcherv3.StringMatcher_Prefix:
		return strings.HasPrefix(name, lower(p.Prefix))
	case *matcherv3.StringMatcher_Suffix:
		return strings.HasSuffix(name, lower(p.Suffix))
	case *matcherv3.StringMatcher_Contains:
		return strings.Contains(name, lower(p.Contains))
	}
	return false
}
