package doctor

import (
	"fmt"
	"slices"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
)

// assignment is a cluster's list of endpoints, stated apart from it.
type assignment struct {
	at   Path
	list []endpoint
}

// assignments returns the lists of endpoints among resources, by cluster name.
func assignments(read reader, from []resource) map[string]assignment {
	all := map[string]assignment{}
	for _, r := range from {
		var a endpointv3.ClusterLoadAssignment
		if read.message(r, &a) {
			list, _ := endpointsOf(r.at, &a)
			all[a.GetClusterName()] = assignment{r.at, list}
		}
	}
	return all
}

// assign takes the cluster's endpoints from all, and reports whether it found them.
func (c *cluster) assign(all map[string]assignment) bool {
	name := c.config.GetEdsClusterConfig().GetServiceName()
	if name == "" {
		name = c.config.GetName()
	}
	own, ok := all[name]
	if ok {
		c.endpoints, c.listedAt, c.resolved = own.list, own.at.add("endpoints"), true
	}
	return ok
}

// endpointsFile returns the path of the file with the cluster's endpoints; "" if there is none.
func (c *cluster) endpointsFile() string {
	return c.config.GetEdsClusterConfig().GetEdsConfig().GetPathConfigSource().GetPath()
}

// EndpointFiles returns the paths of the files with endpoints that the configuration lacks, each once. They are
// relative to Envoy's working directory. Assign takes their texts.
func (e *Envoy) EndpointFiles() []string {
	var paths []string
	for _, c := range e.clusters {
		if path := c.endpointsFile(); path != "" && !c.resolved && !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
	}
	return paths
}

// Assign gives the endpoints in a file's text to the clusters that read them from it. The text is a DiscoveryResponse
// in YAML or JSON.
func (e *Envoy) Assign(path string, text []byte) error {
	documents, err := decode(text)
	if err != nil {
		return err
	}
	var from []resource
	for _, document := range documents {
		tree, _ := document.(map[string]any)
		list, _ := tree["resources"].([]any)
		for i := range list {
			if own, _ := list[i].(map[string]any); own != nil {
				from = append(from, resource{Path{file(path), "resources", i}, own})
			}
		}
	}
	all := assignments(reader{&e.notes}, from)
	for _, c := range e.clusters {
		if c.endpointsFile() == path && !c.resolved && !c.assign(all) {
			return fmt.Errorf("has no endpoints of cluster %s", c.config.GetName())
		}
	}
	return nil
}
