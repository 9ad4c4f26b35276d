package doctor

import (
	"fmt"
	"slices"

	aiv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ai_protocol_manager/v3"
	bufferv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/buffer/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
)

// responseTrailers checks that streams last until the answer has ended. With the body Weir sees its end; if Weir may
// override the mode, it asks for trailers itself.
func responseTrailers(e *Envoy, w Weir, report reporter) {
	for _, u := range w.of(e, false) {
		mode := u.config.GetProcessingMode()
		if mode.GetResponseBodyMode() != extprocv3.ProcessingMode_NONE ||
			mode.GetResponseTrailerMode() == extprocv3.ProcessingMode_SEND || u.overridden(len(w.of(e, true)) > 0) {
			continue
		}
		found := mode.GetResponseTrailerMode().String()
		if mode.GetResponseTrailerMode() == extprocv3.ProcessingMode_DEFAULT {
			found = "SKIP (the default)"
		}
		report(u.at("processing_mode", "response_trailer_mode"), found, "response_trailer_mode: SEND")
	}
}

// overridden reports whether Envoy accepts the mode override in each of Weir's answers to request headers (ADR 0211). A
// list of allowed modes has to have all of them: without the body, with it, and beside a gate also without the body and
// the response headers.
func (u use) overridden(gated bool) bool {
	body := u.config.GetProcessingMode().GetRequestBodyMode()
	switch body {
	case extprocv3.ProcessingMode_BUFFERED, extprocv3.ProcessingMode_BUFFERED_PARTIAL, extprocv3.ProcessingMode_STREAMED:
	default:
		return false
	}
	const none, send, skip = extprocv3.ProcessingMode_NONE, extprocv3.ProcessingMode_SEND, extprocv3.ProcessingMode_SKIP
	return u.config.GetAllowModeOverride() && (len(u.config.GetAllowedOverrideModes()) == 0 ||
		u.allows(none, skip, send) && u.allows(body, send, send) && (!gated || u.allows(none, skip, skip)))
}

// allows reports whether the list of allowed modes has this one, with response body NONE and response trailers. Envoy
// compares all fields except the request headers' mode, each as it is written: DEFAULT is not SEND or SKIP.
func (u use) allows(body extprocv3.ProcessingMode_BodySendMode, trailers, headers extprocv3.ProcessingMode_HeaderSendMode) bool {
	return slices.ContainsFunc(u.config.GetAllowedOverrideModes(), func(m *extprocv3.ProcessingMode) bool {
		return m.GetRequestBodyMode() == body && m.GetRequestTrailerMode() == trailers && m.GetResponseHeaderMode() == headers &&
			m.GetResponseBodyMode() == extprocv3.ProcessingMode_NONE && m.GetResponseTrailerMode() == extprocv3.ProcessingMode_SEND
	})
}

// bufferFilter checks that only whole requests reach Weir: by the buffer filter, or by ai_protocol_manager.
// BUFFERED_PARTIAL is meant for bodies that such a filter would refuse.
func bufferFilter(e *Envoy, w Weir, report reporter) {
	for _, u := range w.of(e, false) {
		if _, _, ok := u.buffer(); ok || u.readBefore() ||
			u.config.GetProcessingMode().GetRequestBodyMode() == extprocv3.ProcessingMode_BUFFERED_PARTIAL {
			continue
		}
		at := u.filter.at
		if off := u.offHere(); off != nil {
			at = off
		}
		report(at, "no buffer filter before it", fmt.Sprintf(`{ name: envoy.filters.http.buffer, typed_config: { "@type": `+
			`type.googleapis.com/envoy.extensions.filters.http.buffer.v3.Buffer, max_request_bytes: %d } }`, w.Document.Limits.MaxBodyBytes))
	}
}

// offHere returns the place of the override that disables a buffer filter on the route; nil if there is none.
func (u use) offHere() Path {
	if u.route == nil {
		return nil
	}
	for _, f := range u.manager.filters[:u.place] {
		if _, is := f.config.(*bufferv3.Buffer); !is || f.disabled {
			continue
		}
		for _, v := range slices.Backward(u.route.layers) {
			if _, ok := v.configs[f.name]; ok {
				return v.at.add(f.name)
			}
		}
	}
	return nil
}

// readBefore reports whether ai_protocol_manager reads the route's requests before ext_proc: it holds them until they
// are whole.
func (u use) readBefore() bool {
	for _, f := range u.manager.filters[:u.place] {
		config, ok := f.config.(*aiv3.AiProtocolManager)
		if !ok || config.GetRequestHandling() == nil {
			continue
		}
		overrides, off := u.route.of(f)
		own, declared := last(overrides).(*aiv3.AiProtocolManagerPerRoute)
		if !off && declared && own.GetRequest() != nil {
			return true
		}
	}
	return false
}

// twoFilters checks that a route has only one main filter for each cluster of Weir.
func twoFilters(e *Envoy, w Weir, report reporter) {
	first := map[way]use{}
	for _, u := range w.of(e, false) {
		if before, ok := first[u.way()]; ok {
			report(u.filter.at, fmt.Sprintf("%s, after %s to the same cluster", u.filter.name, before.filter.name), "disabled: true")
			continue
		}
		first[u.way()] = u
	}
}

// usageSide checks that usage is read at a side where none is lost.
func usageSide(e *Envoy, w Weir, report reporter) {
	for _, u := range w.of(e, false) {
		for _, f := range u.manager.filters {
			config, ok := f.config.(*aiv3.AiProtocolManager)
			if _, off := u.route.of(f); !ok || off || config.GetResponseHandling().GetTokenUsage() == nil {
				continue
			}
			at := f.at.add("typed_config", "response_handling", "token_usage")
			report(at, "a filter of the listener", fmt.Sprintf("typed_extension_protocol_options: { %s: { http_filters: [ … ] } }", optionsKey))
		}
	}
}
