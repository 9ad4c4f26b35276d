package doctor

import "github.com/weir-epp/weir/internal/envoyrun"

var overridden = map[string]any{"processing_mode": map[string]any{"request_body_mode": "BUFFERED", "response_trailer_mode": "SKIP"}}

// allowed lists Weir's requested modes: by the request's body, and SKIP for one without response headers.
func allowed(modes ...string) edit {
	var all []any
	for _, name := range modes {
		m := map[string]any{
			"request_body_mode": name, "request_trailer_mode": "SKIP", "response_header_mode": "SEND", "response_trailer_mode": "SEND",
		}
		switch name {
		case "BUFFERED":
			m["request_trailer_mode"] = "SEND"
		case "SKIP":
			m["request_body_mode"], m["response_header_mode"] = "NONE", "SKIP"
		}
		all = append(all, m)
	}
	return setFilter(ext, all, "allowed_override_modes")
}

// trapsOfTrailers are those of response-trailers: Envoy sends none, and Weir cannot ask for them.
var trapsOfTrailers = []trap{
	{
		check: "response-trailers", bad: trailerless, good: mode("response_trailer_mode", "SKIP"),
		where: "….processing_mode.response_trailer_mode", line: "response_trailer_mode: SEND",
	},
	{
		check: "response-trailers", bad: envoyrun.Edits(setFilter(ext, nil, "processing_mode", "response_trailer_mode"), noOverride),
		good:  envoyrun.Edits(setFilter(ext, nil, "processing_mode", "response_trailer_mode"), mode("response_body_mode", "STREAMED")),
		where: "….processing_mode.response_trailer_mode",
	},
	{
		check: "response-trailers", bad: envoyrun.Edits(noOverride, onRoute(overridden)),
		good:  onRoute(map[string]any{"processing_mode": map[string]any{"request_body_mode": "BUFFERED", "response_trailer_mode": "SEND"}}),
		where: `….route_config.virtual_hosts[0].typed_per_filter_config["envoy.filters.http.ext_proc"].overrides.processing_mode.response_trailer_mode`,
	},
	{ // one of the modes that Weir asks for is not in the list
		check: "response-trailers", file: "gate", where: "….processing_mode.response_trailer_mode",
		bad:  envoyrun.Edits(mode("response_trailer_mode", "SKIP"), allowed("BUFFERED", "NONE")),
		good: envoyrun.Edits(mode("response_trailer_mode", "SKIP"), allowed("BUFFERED", "NONE", "SKIP")),
	},
	{
		check: "response-trailers", where: "….processing_mode.response_trailer_mode",
		bad:  envoyrun.Edits(mode("response_trailer_mode", "SKIP"), allowed("NONE", "SKIP")),
		good: envoyrun.Edits(mode("response_trailer_mode", "SKIP"), allowed("BUFFERED", "NONE")),
	},
	{
		check: "response-trailers", where: "….processing_mode.response_trailer_mode",
		bad:  envoyrun.Edits(mode("response_trailer_mode", "SKIP"), allowed("BUFFERED", "SKIP")),
		good: envoyrun.Edits(mode("response_trailer_mode", "SKIP"), allowed("NONE", "BUFFERED")),
	},
	{
		check: "response-trailers", where: "….processing_mode.response_trailer_mode",
		bad:  envoyrun.Edits(mode("response_trailer_mode", "SKIP"), setFilter(ext, []any{map[string]any{}}, "allowed_override_modes")),
		good: mode("response_trailer_mode", "SKIP"),
	},
	{ // Weir does not override NONE
		check: "response-trailers", good: mode("request_body_mode", "NONE"), where: "….processing_mode.response_trailer_mode",
		bad: envoyrun.Edits(mode("response_trailer_mode", "SKIP"), mode("request_body_mode", "NONE")),
	},
}
