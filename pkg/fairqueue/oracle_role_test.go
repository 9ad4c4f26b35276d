package fairqueue

// The oracle's rule of roles: a flow has the least of the weights with which its requests have come since it began to wait.

// weightWith returns the weight that a request brings to its flow.
func (o *oracle) weightWith(flow string, r *Request) Weight {
	if _, own := o.cfg.Weights[flow]; own || r.Path == nil || o.cfg.Roles[r.Path.Role].Weight == 0 {
		return o.cfg.weight(flow)
	}
	return o.cfg.Roles[r.Path.Role].Weight
}

// weigh is called before w waits in its flow, or goes without waiting.
func (o *oracle) weigh(w *waiter) {
	t, with := w.tier, o.weightWith(w.flow, w.r)
	if t.flows[w.flow] == nil || with < o.weight(t, w.flow) {
		t.weights[w.flow] = with
	}
}

// weight returns a flow's weight, also of a flow with requests in flight only.
func (o *oracle) weight(t *oracleTier, flow string) Weight {
	if w, known := t.weights[flow]; known {
		return w
	}
	return o.cfg.weight(flow)
}

// reweigh is called after a reload: only waiting requests count.
func (o *oracle) reweigh() {
	for _, t := range o.tiers {
		for flow := range t.weights {
			least := Weight(0)
			for _, w := range o.ofFlow(t, flow) {
				if with := o.weightWith(flow, w.r); least == 0 || with < least {
					least = with
				}
			}
			_, own := o.cfg.Weights[flow]
			switch {
			case least > 0:
				t.weights[flow] = least
			case own || len(o.cfg.Roles) == 0:
				t.weights[flow] = o.cfg.weight(flow)
			}
		}
	}
}
