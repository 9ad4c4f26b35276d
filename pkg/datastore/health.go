package datastore

// health is the state of one endpoint according to its probes: not ready at first, ready after the first success,
// unready after FailureThreshold consecutive failures, and ready again after SuccessThreshold consecutive successes.
type health struct {
	ready  bool
	probed bool // it has been ready before
	streak int  // consecutive results that contradict ready
}

// finding is the change by a probe's result.
type finding int

const (
	sameAsBefore finding = iota
	becameReady
	becameUnready
	neverReady // FailureThreshold consecutive failures since it was listed; reported once
)

// observe records a result and returns the change.
func (h *health) observe(success bool, config ProbeConfig) finding {
	if success == h.ready {
		if h.ready || h.probed {
			h.streak = 0
			return sameAsBefore
		}
		if h.streak--; h.streak == -config.FailureThreshold { // negative: counts failures before the first success
			return neverReady
		}
		return sameAsBefore
	}
	if !h.probed {
		*h = health{ready: true, probed: true}
		return becameReady
	}
	h.streak++
	switch {
	case success && h.streak >= config.SuccessThreshold:
		*h = health{ready: true, probed: true}
		return becameReady
	case !success && h.streak >= config.FailureThreshold:
		*h = health{probed: true}
		return becameUnready
	}
	return sameAsBefore
}
