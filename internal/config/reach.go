package config

import "slices"

// highestUsable returns the rank of the highest tier that any tenant may use. The tiers above it get no requests, so
// nothing is reserved for them.
func (d *Document) highestUsable() int {
	streams := d.ExtprocConfig()
	return streams.HighestUsable()
}

// identifies reports whether a flow's key has a source that names a tenant: any but the model.
func (f Flows) identifies() bool {
	return slices.ContainsFunc(f.tenantKey(), func(source string) bool { return source != SourceModel })
}

// tenantKey returns the sources of a flow's identity, in the first level if there are levels.
func (f Flows) tenantKey() []string {
	if len(f.Levels) > 0 {
		return f.Levels[0].Key
	}
	return f.Key
}

// userKey returns the sources of the identity in the second level; none if there is none.
func (f Flows) userKey() []string {
	if len(f.Levels) > 1 {
		return f.Levels[1].Key
	}
	return nil
}
