package eds

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/netip"
)

// Host is an endpoint of the cluster.
type Host struct {
	Address  netip.AddrPort
	Draining bool // takes only requests that name it
}

// Encode returns the text of a file with the endpoints of a cluster: a DiscoveryResponse in JSON, which is YAML too,
// with a line for each endpoint.
func Encode(cluster string, hosts []Host) []byte {
	var b bytes.Buffer
	b.WriteString(`{"resources": [{"@type": "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment",` + "\n")
	fmt.Fprintf(&b, "\"cluster_name\": %s, \"endpoints\": [{\"lb_endpoints\": [", quoted(cluster))
	for i, h := range hosts {
		if i > 0 {
			b.WriteByte(',')
		}
		status := ""
		if h.Draining {
			status = `"health_status": "DRAINING", `
		}
		fmt.Fprintf(&b, "\n  {%s\"endpoint\": {\"address\": {\"socket_address\": {\"address\": %s, \"port_value\": %d}}}}",
			status, quoted(h.Address.Addr().String()), h.Address.Port())
	}
	b.WriteString("\n]}]}]}\n")
	return b.Bytes()
}

// quoted returns a string in JSON.
func quoted(text string) []byte {
	b, _ := json.Marshal(text) // a string has no error
	return b
}
