package scheduling

// The filters.
const (
	FilterReady  = "ready"
	FilterSubset = "subset"
	FilterModel  = "model"
)

// filterMaxInFlight is the name that a Decision shows for an endpoint's hard limit. It is not configured: it applies if
// the endpoint has a limit.
const filterMaxInFlight = "max-in-flight"

// filterBound is that name for an endpoint's own upper bound of requests.
const filterBound = "bound"

// filterNeeds is that name for an endpoint that does not meet a need of the request's.
const filterNeeds = "needs"

// filterRole is that name for an endpoint whose engine does not answer requests.
const filterRole = "role"

// filterTokens is that name for the bound of an endpoint's tokens.
const filterTokens = "tokens"

// filterExcepted is that name for endpoints that the caller of a placement excludes.
const filterExcepted = "excepted"

// filter rules endpoints out by the request and the snapshot. It does not look at live counts, so its result holds
// until the next snapshot.
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
