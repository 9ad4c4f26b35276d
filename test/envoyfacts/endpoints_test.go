package envoyfacts

import (
	"io"
	"net/http"
	"net/netip"
	"os"
	"testing"

	"github.com/weir-epp/weir/internal/eds"
	"github.com/weir-epp/weir/internal/envoyrun"
)

// assign renames a file with these endpoints over the one that Envoy follows, and waits until Envoy has read it.
func (e *proxy) assign(t *testing.T, hosts ...eds.Host) {
	t.Helper()
	const updates = "cluster.model_servers.update_success"
	stats, err := e.Stats(t.Context(), "^"+updates+"$")
	if err != nil {
		t.Fatal(err)
	}
	if err := eds.Write(e.EndpointsFile(), eds.Encode(envoyrun.ModelServersCluster, hosts)); err != nil {
		t.Fatal(err)
	}
	e.waitForStat(t, updates, stats[updates]+1)
}

// answers sends requests with headers, and returns the number of each answer. All have status 200.
func (e *proxy) answers(t *testing.T, requests int, pairs ...string) map[string]int {
	t.Helper()
	count := map[string]int{}
	for range requests {
		resp := e.post(t, "", pairs...).headers()
		body, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Errorf("%v: %d, %v", pairs, resp.StatusCode, err)
		}
		count[string(body)]++
	}
	return count
}

// "A destination that Envoy lacks goes to the next one of Weir's list, or by the fallback policy. A draining endpoint
// gets the requests that name it, and none by the fallback policy unless all drain." A removed endpoint's answer goes
// on to its end. A file that is no list of endpoints changes nothing.
func TestEndpointsFile(t *testing.T) {
	begun, release := make(chan struct{}), make(chan struct{})
	a, c := modelServer(t, answering("a")), modelServer(t, answering("c"))
	b := modelServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("x-slow") != "" {
			w.(http.Flusher).Flush()
			close(begun)
			<-release
		}
		answering("b")(w, r)
	})
	p := newProcessor(t)
	envoy := start(t, "recommended", p, envoyrun.KeepHeader(destinationHeader), a)
	p.die() // requests go on with the destinations that they name
	hostA, hostB := eds.Host{Address: netip.MustParseAddrPort(a)}, eds.Host{Address: netip.MustParseAddrPort(b)}
	draining := eds.Host{Address: hostB.Address, Draining: true}

	want := func(what string, got map[string]int, a, b int) {
		t.Helper()
		if got["a"] != a || got["b"] != b || len(got) > 2 {
			t.Errorf("%s: %v; want %d from a and %d from b", what, got, a, b)
		}
	}
	want("b is not there", envoy.answers(t, 4, destinationHeader, b), 4, 0)
	envoy.assign(t, hostA, eds.Host{Address: netip.MustParseAddrPort(c)})
	want("nor in a list", envoy.answers(t, 8, destinationHeader, b+","+a), 8, 0)

	envoy.assign(t, hostA, hostB)
	want("b has come", envoy.answers(t, 4, destinationHeader, b), 0, 4)
	want("a list with it", envoy.answers(t, 4, destinationHeader, b+","+a), 0, 4)
	if got := envoy.answers(t, 32); got["a"] == 0 || got["b"] == 0 {
		t.Errorf("the fallback policy takes %v", got)
	}

	slow := envoy.post(t, "", destinationHeader, b, "x-slow", "1")
	<-begun
	envoy.assign(t, hostA, draining)
	want("b drains and is named", envoy.answers(t, 4, destinationHeader, b), 0, 4)
	want("b drains and is not named", envoy.answers(t, 32), 32, 0)

	away := eds.Host{Address: netip.MustParseAddrPort(unused(t)), Draining: true}
	envoy.assign(t, hostA, draining, away)
	want("most drain and none is named", envoy.answers(t, 32), 32, 0)
	envoy.assign(t, draining)
	want("all drain and none is named", envoy.answers(t, 8), 0, 8)
	want("all drain and b is named", envoy.answers(t, 4, destinationHeader, b), 0, 4)

	envoy.assign(t, hostA)
	want("b is gone", envoy.answers(t, 4, destinationHeader, b), 4, 0)
	close(release)
	slow.want(http.StatusOK, "b")

	if err := eds.Write(envoy.EndpointsFile(), []byte("resources: [")); err != nil {
		t.Fatal(err)
	}
	envoy.assign(t, hostA, hostB) // has been read after the broken one
	if err := os.Remove(envoy.EndpointsFile()); err != nil {
		t.Fatal(err)
	}
	want("the file is gone", envoy.answers(t, 4, destinationHeader, b), 0, 4)
}
