package scheduling

// Signals are what an engine reports of itself, as it was read last. They only correct Weir's own count; the zero
// value knows nothing, which is also what is set when they are too old.
type Signals struct {
	// Known reports whether the other fields mean anything.
	Known bool
	// Running and Waiting are requests inside the engine, in its batch and before it.
	Running, Waiting int32
	// CacheUsed is the used share of its KV cache, in millionths.
	CacheUsed int32
}

// Load is what a live scorer looks at: one endpoint, now.
type Load struct {
	// InFlight is Weir's own count of the requests there.
	InFlight int
	// UpperBound is the endpoint's share of the band, in millionths of a request; 0: none.
	UpperBound int64
	// Slots is how many requests it runs at once by its own report; 0: unknown.
	Slots int
	// Signals are its engine's.
	Signals Signals
}

// SetSignals changes what is known of one endpoint's engine; the cost does not depend on how many others there are. It
// reports whether the endpoint is in the pool: of others nothing is kept, and who returns is taken for a new engine.
func (b *Board) SetSignals(id EndpointID, signals Signals) bool {
	p, ok := b.ring.position(id)
	if !ok {
		return false
	}
	if s := &b.spots[p]; s.signals != signals {
		s.signals = signals
		b.changed(p)
	}
	return true
}
