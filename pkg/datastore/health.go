package datastore

// health is what the probes of one endpoint have shown: not ready at first, ready after the first success, unready
// after FailureThreshold failures in a row, and then ready again after SuccessThreshold successes in a row.
type health struct {
	ready  bool
	probed bool // it was ready once
	streak int  // results in a row that speak against ready
}

// observe takes a result in and says whether ready changed.
func (h *health) observe(success bool, config ProbeConfig) bool {
	if success == h.ready {
		h.streak = 0
		return false
	}
	h.streak++
	needed := config.FailureThreshold
	switch {
	case success && !h.probed:
		needed = 1
	case success:
		needed = config.SuccessThreshold
	}
	if h.streak < needed {
		return false
	}
	*h = health{ready: success, probed: true}
	return true
}
