package scheduling

// The filters.
const (
	FilterReady  = "ready"
	FilterSubset = "subset"
	FilterModel  = "model"
)

// filterMaxInFlight is the name in a Decision for an endpoint's hard limit. It is not configured: it applies if the
// endpoint has a limit.
const filterMaxInFlight = "max-in-flight"

// filterBound is the name for an endpoint's own upper bound in requests.
const filterBound = "bound"

// filterNeeds is the name for an unmet need of the request.
const filterNeeds = "needs"

// filterRole is the name for an engine that does not answer requests.
const filterRole = "role"

// filterTokens is the name for an endpoint's bound in tokens.
const filterTokens = "tokens"

// filterExcepted is the name for endpoints excluded by the caller of a placement.
const filterExcepted = "excepted"

// filter rules endpoints out by the request and the snapshot. It ignores live counts, so its result is valid until the
// next snapshot.
type filter struct {
	name string
	tag  string // of a Failure
	// passes is only called with a constraint that sets the filter's fields.
	passes func(c *constraint, m *member) bool
	// reason explains why an endpoint does not pass.
	reason func(c *constraint, m *member) string
}

// filters is the registry, sorted by name.
var filters = []filter{
	{
		name:   FilterModel,
		tag:    TagModel,
		passes: func(c *constraint, m *member) bool { return m.Serves(c.model) },
		reason: func(c *constraint, _ *member) string { return "does not serve the model " + quoted(c.model) },
	},
	{
		name:   FilterReady,
		passes: func(_ *constraint, m *member) bool { return m.Ready },
		reason: func(*constraint, *member) string { return "not ready" },
	},
	{
		name:   FilterSubset,
		passes: func(c *constraint, m *member) bool { return !c.confined || covers(c.entries, m.at) },
		reason: func(*constraint, *member) string { return "not in the subset" },
	},
}

func filterNames() []string {
	names := make([]string, 0, len(filters))
	for _, f := range filters {
		names = append(names, f.name)
	}
	return names
}
