package dispatch

// PlacesOf returns the number of slots held by a tenant's failures at an endpoint, or anywhere, as counted by its caps.
func (m *Machine) PlacesOf(tenant string, e Endpoint) (n int) {
	if t := m.flows.known[tenant]; t != nil && e == NoEndpoint {
		return int(t.places)
	}
	if f := m.failing[e]; f != nil {
		for _, h := range f.held {
			if h.tenant.key == tenant {
				n++
			}
		}
	}
	return n
}
