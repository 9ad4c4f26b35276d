package scheduling

// The filters.
const (
	FilterReady  = "ready"
	FilterSubset = "subset"
	FilterModel  = "model"
)

// filterMaxInFlight is the name under which an endpoint's hard limit shows in a Decision. It is not configured: it
// is on where an endpoint has a limit.
const filterMaxInFlight = "max-in-flight"

// filter rules endpoints out by what the request and the snapshot say. It sees no live count, so its verdict holds
// until the next snapshot.
type filter struct {
	name string
	// passes is asked with a constraint in which what the filter looks at is set.
	passes func(c *constraint, m *member) bool
	// reason says why it does not pass.
	reason func(c *constraint, m *member) string
}

// filters is the registry, in order of name.
var filters = []filter{
	{
		name:   FilterModel,
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

func filterByName(name string) (filter, bool) {
	for _, f := range filters {
		if f.name == name {
			return f, true
		}
	}
	return filter{}, false
}

func filterNames() []string {
	names := make([]string, 0, len(filters))
	for _, f := range filters {
		names = append(names, f.name)
	}
	return names
}
