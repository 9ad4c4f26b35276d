package scheduling

// Signals are an engine's latest report about itself. They only correct Weir's own count. The zero value means unknown,
// and replaces outdated signals.
type Signals struct {
	// Known reports whether the other fields are set.
	Known bool
	// Running and Waiting are the requests inside the engine, of all senders: in its batch, and in its queue for want
	// of room.
	Running, Waiting int32
	// CacheUsed is the used share of its KV cache, in millionths, and CacheTokens the cache's size in tokens; 0:
	// unknown.
	CacheUsed   int32
	CacheTokens int64
	// Preemptions is the number of requests preempted, and Produced the number of tokens generated, since its start; 0:
	// unknown.
	Preemptions, Produced int64
	// Slots is the stated number of requests that it runs at once; 0: none stated.
	Slots int32
	// Adapters is its statement of its LoRA adapters; nil: none.
	Adapters *AdapterState
	// Utilised is its stated processor utilisation, in millionths, if StatesUtilised.
	Utilised       int32
	StatesUtilised bool
	// Unloaded is its statement of models that are not loaded; nil: none.
	Unloaded *Unloaded
}

// Load is a comparison's view of one endpoint, now.
type Load struct {
	// Held is the number of requests there: Weir's own, and those reported by other replicas.
	Held int
	// UpperBound is the endpoint's share of the band, in millionths of a request; 0 means none.
	UpperBound int64
	// Tokens are the tokens of the requests there, and TokenBound is their upper bound; both are 0 without a bound.
	Tokens, TokenBound int64
	// Slots is the reported number of requests that it runs at once; 0 means unknown.
	Slots int
	// Signals are those of its engine.
	Signals Signals
	// Priority is the endpoint's, and Latency and Pace are means of its answers in microseconds; 0: unknown.
	Priority      int32
	Latency, Pace int64
}

// AdapterState returns the statement of an endpoint's engine about its adapters; nil: none.
func (b *Board) AdapterState(id EndpointID) *AdapterState {
	if p, ok := b.ring.position(id); ok {
		return b.spots[p].signals.Adapters
	}
	return nil
}

// SetSignals sets the signals of one endpoint's engine; the cost does not depend on the number of endpoints. It reports
// whether the endpoint is in the pool. Signals of endpoints outside the pool are dropped, and a returning endpoint
// counts as a new engine.
func (b *Board) SetSignals(id EndpointID, signals Signals) bool {
	p, ok := b.ring.position(id)
	if !ok {
		return false
	}
	if s := &b.spots[p]; s.signals != signals {
		if s.signals.Adapters != signals.Adapters {
			b.adapters.state(id, signals.Adapters)
			s.adapters = b.adapters.engines[id]
		}
		if s.signals.Unloaded != signals.Unloaded {
			b.unloaded.state(id, s.signals.Unloaded, signals.Unloaded)
		}
		s.signals = signals
		b.changed(p)
	}
	return true
}
