package doctor

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/weir-epp/weir/internal/eds"
)

const modelServers = "config/envoy/eds/model_servers.yaml"

// assigned returns the report about the recommended Envoy with this file of endpoints.
func assigned(t *testing.T, text []byte) (Report, error) {
	t.Helper()
	envoys, err := Read(rendered(t, "recommended", nil))
	if err != nil {
		t.Fatal(err)
	}
	if got := envoys[0].EndpointFiles(); !slices.Equal(got, []string{modelServers}) {
		t.Fatalf("the files are %q", got)
	}
	err = envoys[0].Assign(modelServers, text)
	if got := envoys[0].EndpointFiles(); (err == nil) != (len(got) == 0) {
		t.Errorf("%v, and the files are %q", err, got)
	}
	return Examine(envoys[0], shipped(t, "")), err
}

// The endpoints come from the file of the cluster. A draining endpoint may be missing in Weir's list.
func TestEndpointFiles(t *testing.T) {
	hosts := make([]eds.Host, len(servers))
	for i, address := range servers {
		hosts[i].Address = netip.MustParseAddrPort(address)
	}
	foreign := eds.Host{Address: netip.MustParseAddrPort("[2001:db8::1]:8000")}
	leaving := foreign
	leaving.Draining = true
	for name, test := range map[string]struct {
		hosts []eds.Host
		want  []string
	}{
		"Weir's":   {hosts, nil},
		"draining": {append(slices.Clip(hosts), leaving), nil},
		"more":     {append(slices.Clip(hosts), foreign), []string{"endpoint-only-in-envoy"}},
		"fewer":    {hosts[1:], []string{"endpoint-only-in-weir"}},
		"none":     {nil, []string{"endpoint-only-in-weir"}},
	} {
		r, err := assigned(t, eds.Encode(pool, test.hosts))
		if err != nil || !slices.Equal(ids(r), test.want) || len(r.Notes) > 0 {
			t.Errorf("%s: %v, %v, %q; want %v", name, err, places(r), r.Notes, test.want)
		}
		for _, f := range r.Findings {
			if !strings.HasPrefix(f.Where, modelServers+": resources[0].endpoints") || f.Line != 0 {
				t.Errorf("%s: at %s, line %d", name, f.Where, f.Line)
			}
		}
	}
}

// A file without the cluster's endpoints is an error, and they count as unknown.
func TestEndpointFilesThatLackThem(t *testing.T) {
	for text, want := range map[string]string{
		string(eds.Encode("others", nil)): "has no endpoints of cluster model_servers",
		"":                                "has no endpoints of cluster model_servers",
		"- 1":                             "has no endpoints of cluster model_servers",
		"resources: 1":                    "has no endpoints of cluster model_servers",
		"resources: [1, {a: b}]":          "has no endpoints of cluster model_servers",
		"resources: [":                    "is neither JSON nor YAML",
	} {
		r, err := assigned(t, []byte(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
		if len(r.Findings) > 0 || !strings.Contains(strings.Join(r.Notes, "\n"), "endpoints of cluster model_servers: their addresses are not there") {
			t.Errorf("%q: %v, %q", text, places(r), r.Notes)
		}
	}
}
