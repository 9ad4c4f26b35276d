package integration

import (
	"strings"
	"testing"
)

// A reload from recording: 0 begins the recording at once, while requests wait and are in flight. weir explain then
// shows a request that waited already, one that was in flight and a later one. weir replay repeats each decision. With
// 0 again there is no recording.
func TestRecordingBeginsOnTheWire(t *testing.T) {
	t.Parallel()
	v := newValve()
	base := byTenant + single
	config := newConfigFile(t, base+"recording: 0\n")
	s := start(t, setup{models: v.one(), flags: []string{"--config-file=" + config.path}})
	named := func(tenant, id string) ask { return ask{header: []string{"x-tenant", tenant, "x-request-id", id}} }
	s.begin(named("a", "in flight"))
	s.epp.waitFor(1, "weir_stock_level")
	early := s.begin(named("a", "early"))
	s.epp.waitFor(1, "weir_queue_length")
	config.write(base + "recording: 2\n")
	s.epp.reloaded(1, 0, 1)
	late := s.begin(named("b", "late"))
	s.epp.waitFor(2, "weir_queue_length")
	v.open()
	wantServed(t, "the early one", early.wait())
	wantServed(t, "the late one", late.wait())
	s.epp.settled()
	recorded := s.epp.recording()
	if out, err := runWeir(t, "replay", recorded); err != nil || !strings.Contains(out, "1 of them arrivals: all") {
		t.Errorf("%v\n%s", err, out)
	}
	for id, want := range map[string][]string{
		"in flight": {`Request 1 (in flight) of flow "a"`, "arrived before the recording begins"},
		"early":     {`Request 2 (early) of flow "a"`, "arrived before the recording begins", "It was released after", s.models[0].Address()},
		"late":      {"Request late arrived at", "It had to wait", s.models[0].Address()},
	} {
		out, err := runWeir(t, "explain", recorded, "--request", id)
		for _, part := range want {
			if err != nil || !strings.Contains(out, part) {
				t.Errorf("%s: it is not said that %q: %v\n%s", id, part, err, out)
			}
		}
	}
	config.write(base + "recording: 0\n")
	s.epp.reloaded(2, 0, 1)
	if n := s.epp.value("weir_recording_window_seconds"); n != 0 {
		t.Errorf("the recording reaches back %v s after its end", n)
	}
}
