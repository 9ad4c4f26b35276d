package integration

import (
	"strings"
	"syscall"
	"testing"

	"github.com/weir-epp/weir/internal/envoyrun"
	"github.com/weir-epp/weir/internal/modelsim"
)

const destinationHeader = "x-gateway-destination-endpoint"

// forger is a scene with a model server outside the pool, and a client that names its own destination.
type forger struct {
	*scene
	stranger *modelsim.Server
}

func startForger(t *testing.T, config string, edit func(envoyrun.Bootstrap) error) *forger {
	t.Helper()
	stranger, err := modelsim.Start(recorded(8))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stranger.Close)
	return &forger{
		start(t, setup{
			envoys: []string{config}, models: []modelsim.Config{recorded(8), recorded(8)}, edit: edit, noEPP: config == "direct",
		}),
		stranger,
	}
}

// forge sends each requests with each form of a destination header that names a member of the pool, then as many that
// name a foreign address and Envoy's own admin page. It returns the numbers of the first ones at the named member and
// at the other one.
func (f *forger) forge(each int) (forged, other int) {
	f.t.Helper()
	member := f.models[1].Address()
	begin, sent := len(f.accessLog(0)), 0
	for _, a := range []ask{
		{header: []string{destinationHeader, member}},
		{header: []string{"X-Gateway-Destination-Endpoint", member + "," + member}},
		{header: []string{destinationHeader, member, destinationHeader, member}}, // twice
		{header: []string{destinationHeader, member}, method: "GET", path: "/v1/models"},
	} {
		for range each {
			f.send(a)
			sent++
			if f.epp != nil && !f.epp.Ended() {
				f.epp.waitFor(0, "weir_stock_level") // or the next one goes past a server that is not yet idle again
			}
		}
	}
	for _, entry := range f.accessLog(begin + sent)[begin:] {
		if answered := entry["status"] == 200.0; !answered {
			continue
		}
		if entry["upstream"] == member {
			forged++
		} else {
			other++
		}
	}
	for _, foreign := range []string{f.stranger.Address(), strings.TrimPrefix(f.envoy().AdminURL(), "http://")} {
		for range each {
			f.send(ask{header: []string{destinationHeader, foreign}})
			if got := f.send(ask{method: "GET", path: "/stats", header: []string{destinationHeader, foreign}}); got.status == 200 {
				f.t.Errorf("GET /stats was answered: %.100q", got.body)
			}
			sent += 2
		}
	}
	f.accessLog(begin + sent) // so that none of them appears later
	if n := f.stranger.Stats().Started; n != 0 {
		f.t.Errorf("%d requests came to a server that is not in the pool", n)
	}
	return forged, other
}

// A destination forged by a client has no effect, with any shipped configuration, whether Weir is running or dead. Both
// members still get their share: otherwise one would get everything.
func TestForgedDestination(t *testing.T) {
	t.Parallel()
	const each = 16
	for _, config := range envoyrun.Shipped() {
		t.Run(config, func(t *testing.T) {
			t.Parallel()
			f := startForger(t, config, nil)
			if f.epp != nil {
				// Turn by turn: exactly half.
				if forged, other := f.forge(each); forged != 2*each || other != 2*each {
					t.Errorf("Weir alive: %d came to the forged member, %d to the other; want halves of %d", forged, other, 4*each)
				}
				f.epp.signal(syscall.SIGKILL)
				f.epp.exitCode(patience)
			}
			want := 4 * each
			switch config {
			case "fail-closed":
				want = 0
			case "full-duplex":
				want = each // Envoy has no copy of a body on its way to Weir: only the GETs continue
			}
			// At the smallest number of requests, all go to one side by chance once in 65,536 runs.
			if forged, other := f.forge(each); forged+other != want || want > 0 && other == 0 {
				t.Errorf("Weir down: %d came to the forged member, %d to the other, want %d in all", forged, other, want)
			}
		})
	}
}

// Even if the configuration does not remove the header (another gateway's might not), Weir does not honour it. It
// overwrites the header if it names a destination, and removes it otherwise.
func TestForgedDestinationThatReachesWeir(t *testing.T) {
	t.Parallel()
	for _, m := range modes {
		t.Run(m.config, func(t *testing.T) {
			t.Parallel()
			f := startForger(t, m.config, envoyrun.KeepHeader(destinationHeader))
			if forged, other := f.forge(8); forged != 16 || other != 16 {
				t.Errorf("%d came to the forged member, %d to the other; want halves of 32", forged, other)
			}
			f.epp.settled()
		})
	}
}
