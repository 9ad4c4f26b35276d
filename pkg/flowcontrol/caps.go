package flowcontrol

// capped says whether flows are capped at all.
func (c *RequestQueueController) capped() bool {
	return c.config.MaxInFlightPerFlow > 0 || c.config.MaxInFlightPerFlowPerBackend > 0
}

// atCap says whether the flow has as many leases as it may have in total.
func (c *RequestQueueController) atCap(a *flowAccount) bool {
	return c.config.MaxInFlightPerFlow > 0 && a.inflight >= c.config.MaxInFlightPerFlow
}

// fullFor are the endpoints at which the flow has as many leases as it may have there. It is valid until the next call.
func (c *RequestQueueController) fullFor(a *flowAccount) []Endpoint {
	most := c.config.MaxInFlightPerFlowPerBackend
	if most == 0 {
		return nil
	}
	c.full = c.full[:0]
	for _, at := range a.at {
		if at.n >= most {
			c.full = append(c.full, at.endpoint)
		}
	}
	return c.full
}

// count counts l against its flow's cap at its endpoint. Leases from before a reload that capped them do not count.
func (c *RequestQueueController) count(l *Lease) {
	if c.config.MaxInFlightPerFlowPerBackend == 0 {
		return
	}
	l.counted = true
	for i := range l.flow.at {
		if l.flow.at[i].endpoint == l.endpoint {
			l.flow.at[i].n++
			return
		}
	}
	l.flow.at = append(l.flow.at, endpointCount{l.endpoint, 1})
}

func (c *RequestQueueController) uncount(l *Lease) {
	if !l.counted {
		return
	}
	l.counted = false
	at := l.flow.at
	for i := range at {
		if at[i].endpoint != l.endpoint {
			continue
		}
		if at[i].n--; at[i].n == 0 {
			at[i] = at[len(at)-1]
			l.flow.at = at[:len(at)-1]
		}
		return
	}
}

// unpark lets the flow's waiters be looked at again, after one of its leases was settled.
func (c *RequestQueueController) unpark(a *flowAccount) {
	if c.capped() && a.waiting > 0 {
		c.queue.UnparkFlow(a.key.tier, a.key.flow)
	}
}
