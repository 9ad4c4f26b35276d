package extproc

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
)

// servedKey is where Envoy's override_host policy says, in the metadata of the response headers, which endpoint has
// served (selected_host_key): another than the first one after a retry.
const servedKey = "x-gateway-destination-endpoint-served"

// served moves the lease to the endpoint that has served, if it is not the one picked, so that the stock is counted where
// the work is. It returns that endpoint's address, "" if it is not another.
func (s *Server) served(metadata *corev3.Metadata, picked string, lease Lease) (elsewhere string) {
	if lease == nil || picked == "" {
		return ""
	}
	fields := metadata.GetFilterMetadata()["envoy.lb"].GetFields()
	address := fields[servedKey].GetStringValue()
	if address == "" || address == picked {
		return ""
	}
	s.elsewhere.count(picked, address)
	if e, ok := s.picker.Locate(address); ok {
		lease.OnServed(e)
	}
	return address
}

// servedBy is the endpoint that has served, if it is known to be another than the one picked; else "".
func (st *stream) servedBy() string {
	if st.elsewhere == "" && st.tie != nil {
		if served := st.tie.served.Load(); served != nil {
			return *served
		}
	}
	return st.elsewhere
}
