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
	return slices.ContainsFunc(f.Key, func(source string) bool { return source != SourceModel })
}
