package integration

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/envoyrun"
	"github.com/weir-epp/weir/internal/modelsim"
)

const destinationHeader = "x-gateway-destination-endpoint"

// forger is a scene with a model server that is not in the pool, and a client that names its own destination.
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

// forge sends so many requests with each form of a forged destination to a member of the pool, then as many to a stranger
// and to Envoy's own admin page. Of the first, it returns how many were answered by each member.
func (f *forger) forge(each int) (forged, other int) {
	f.t.Helper()
	member := f.models[1].Address()
	begin, sent := len(f.log(0)), 0
	for _, a := range []ask{
		{header: []string{destinationHeader, member}},
		{header: []string{"X-Gateway-Destination-Endpoint", member + "," + member}},
		{header: []string{destinationHeader, member, destinationHeader, member}}, // twice
		{header: []string{destinationHeader, member}, method: "GET", path: "/v1/models"},
	} {
		for range each {
			f.send(a)
			sent++
		}
	}
	for _, entry := range f.log(begin + sent)[begin:] {
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
	f.log(begin + sent) // so that none of them shows up later
	if n := f.stranger.Stats().Started; n != 0 {
		f.t.Errorf("%d requests came to a server that is not in the pool", n)
	}
	return forged, other
}

// log waits for so many entries of Envoy's access log.
func (f *forger) log(lines int) []map[string]any {
	f.t.Helper()
	var log []map[string]any
	eventually(f.t, "access log", func() (err error) {
		if log, err = f.envoy().AccessEntries(); err == nil && len(log) < lines {
			err = errNotYet
		}
		return err
	})
	return log
}

// A destination that a client forges chooses nothing, with any shipped configuration, while Weir is there and when it is
// gone. Both members get their share all the same: were the header honoured, one would get everything.
func TestForgedDestination(t *testing.T) {
	const each = 16
	for _, config := range envoyrun.Shipped() {
		t.Run(config, func(t *testing.T) {
			f := startForger(t, config, nil)
			if f.epp != nil {
				// Turn by turn: exactly half.
				if forged, other := f.forge(each); forged != 2*each || other != 2*each {
					t.Errorf("Weir alive: %d came to the forged member, %d to the other; want halves of %d", forged, other, 4*each)
				}
				f.epp.signal(syscall.SIGKILL)
				f.epp.exitCode(10 * time.Second)
			}
			want := 4 * each
			switch config {
			case "fail-closed":
				want = 0
			case "full-duplex":
				want = each // Envoy has no copy of a body that was on its way to Weir: only the GETs go on
			}
			// By chance all on one side comes once in 65,536 runs, with the fewest.
			if forged, other := f.forge(each); forged+other != want || want > 0 && other == 0 {
				t.Errorf("Weir down: %d came to the forged member, %d to the other, want %d in all", forged, other, want)
			}
		})
	}
}

// Also where the configuration does not remove the header (another gateway's, say), Weir does not let it choose: it is
// overwritten where Weir names a destination, and taken off where it does not.
func TestForgedDestinationThatReachesWeir(t *testing.T) {
	for _, m := range modes {
		t.Run(m.config, func(t *testing.T) {
			f := startForger(t, m.config, envoyrun.KeepHeader(destinationHeader))
			if forged, other := f.forge(8); forged != 16 || other != 16 {
				t.Errorf("%d came to the forged member, %d to the other; want halves of 32", forged, other)
			}
			f.epp.settled()
		})
	}
}
