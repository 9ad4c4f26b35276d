package dispatch

// PlacesOf returns how many places the failures of a tenant hold at an endpoint, or anywhere, as its caps count them.
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
