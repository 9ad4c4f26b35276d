package datastore

// health is what the probes of one endpoint have shown: not ready at first, ready after the first success, unready
// after FailureThreshold failures in a row, and then ready again after SuccessThreshold successes in a row.
type health struct {
	ready  bool
	probed bool // it was ready once
	streak int  // results in a row that speak against ready
}

// finding is what a probe's result means.
type finding int

const (
	sameAsBefore finding = iota
	becameReady
	becameUnready
	neverReady // FailureThreshold failures in a row since it is listed; told once
)

// observe takes a result in and answers what it means.
func (h *health) observe(success bool, config ProbeConfig) finding {
	if success == h.ready {
		if h.ready || h.probed {
			h.streak = 0
			return sameAsBefore
		}
		if h.streak--; h.streak == -config.FailureThreshold { // below zero: failures before the first success
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
