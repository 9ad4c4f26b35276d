package doctor

import "github.com/weir-epp/weir/internal/envoyrun"

var overridden = map[string]any{"processing_mode": map[string]any{"request_body_mode": "BUFFERED", "response_trailer_mode": "SKIP"}}

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
	{ // the mode that Weir asks for is not in the list
		check: "response-trailers", good: mode("response_trailer_mode", "SKIP"), where: "….processing_mode.response_trailer_mode",
		bad: envoyrun.Edits(mode("response_trailer_mode", "SKIP"), setFilter(ext, []any{map[string]any{}}, "allowed_override_modes")),
	},
	{ // Weir does not override NONE
		check: "response-trailers", good: mode("request_body_mode", "NONE"), where: "….processing_mode.response_trailer_mode",
		bad: envoyrun.Edits(mode("response_trailer_mode", "SKIP"), mode("request_body_mode", "NONE")),
	},
}
