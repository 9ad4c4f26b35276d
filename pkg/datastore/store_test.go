package datastore

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/go-logr/logr"

	"github.com/weir-epp/weir/pkg/scheduling"
)

func mustNew(t testing.TB, config Config) *Store {
	t.Helper()
	s, err := New(config, logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func at(addresses ...string) []scheduling.Endpoint {
	var out []scheduling.Endpoint
	for _, address := range addresses {
		out = append(out, scheduling.Endpoint{Address: address, Ready: true})
	}
	return out
}

// seen lists a snapshot's addresses in order of ID, with a minus before those that are not ready.
func seen(s *scheduling.Snapshot) []string {
	var out []string
	for i := range s.Len() {
		e := s.At(i)
		if !e.Ready {
			e.Address = "-" + e.Address
		}
		out = append(out, e.Address)
	}
	return out
}

func wantSeen(t testing.TB, s *scheduling.Snapshot, want ...string) {
	t.Helper()
	if got := seen(s); !slices.Equal(got, want) {
		t.Fatalf("version %d holds %q, want %q", s.Version(), got, want)
	}
}

func TestStatic(t *testing.T) {
	config := DefaultConfig()
	config.Endpoints = []string{"10.0.0.1:80,10.0.0.2:80", "[::1]:80"}
	s := mustNew(t, config)
	wantSeen(t, s.Current(), "10.0.0.1:80", "10.0.0.2:80", "[::1]:80")
	if s.Current().Version() != 1 || s.Invalid() != nil {
		t.Fatalf("version %d, %v", s.Current().Version(), s.Invalid())
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Run(ctx); err != nil {
		t.Fatal(err)
	}
}

// Subscribers get the current snapshot and every later one, in order; an unchanged pool is not published again.
func TestPublication(t *testing.T) { synctest.Test(t, publication) }

func publication(t *testing.T) {
	s := mustNew(t, DefaultConfig())
	set := func(endpoints []scheduling.Endpoint) {
		s.Set(endpoints)
		pass(gatherTime)
	}
	var versions []uint64
	s.Subscribe(func(snap *scheduling.Snapshot) {
		if snap != s.Current() {
			t.Error("not the current snapshot")
		}
		versions = append(versions, snap.Version())
	})
	one := scheduling.Endpoint{Address: "10.0.0.1:80", Ready: true, Models: []string{"a"}, Labels: map[string]string{"zone": "x"}}
	set(nil) // it was empty before
	set([]scheduling.Endpoint{one})
	set([]scheduling.Endpoint{one}) // unchanged
	set(append(at("10.0.0.2:80"), one))
	set(append([]scheduling.Endpoint{one}, at("10.0.0.2:80")...)) // only the order differs
	one.Ready = false
	set([]scheduling.Endpoint{one})
	one.Labels = map[string]string{"zone": "y"}
	set([]scheduling.Endpoint{one})
	one.Models = nil
	set([]scheduling.Endpoint{one})
	one.Slots = 2
	set([]scheduling.Endpoint{one})
	one.MaxInFlight = 3
	set([]scheduling.Endpoint{one})
	set(nil)
	if want := []uint64{0, 1, 2, 3, 4, 5, 6, 7, 8}; !slices.Equal(versions, want) {
		t.Fatalf("versions %v, want %v", versions, want)
	}
	s.Subscribe(func(snap *scheduling.Snapshot) { versions = []uint64{snap.Version()} })
	if !slices.Equal(versions, []uint64{8}) {
		t.Fatalf("a late subscriber got %v", versions)
	}
}

// An endpoint with requests in flight keeps its ID, whether it is in the pool or not, and however its address is written.
func TestStableIDs(t *testing.T) { synctest.Test(t, stableIDs) }

func stableIDs(t *testing.T) {
	config := DefaultConfig()
	config.InUse = func(departed []scheduling.EndpointID) []scheduling.EndpointID { return departed }
	s := mustNew(t, config)
	defer end(s)
	s.Set(at("10.0.0.1:80", "[::1]:80"))
	one, six := idAt(t, s, "10.0.0.1:80"), idAt(t, s, "[::1]:80")
	s.Set(at("10.0.0.2:80"))
	two := idAt(t, s, "10.0.0.2:80")
	pass(gatherTime)
	s.Set(at("[0::1]:80", "10.0.0.2:80", "10.0.0.1:80"))
	if idAt(t, s, "10.0.0.1:80") != one || idAt(t, s, "[::1]:80") != six || idAt(t, s, "10.0.0.2:80") != two ||
		one == six || one == two || six == two {
		t.Fatalf("IDs changed: %q", seen(s.Current()))
	}
}

// With concurrent calls of Set, versions still arrive in order and one at a time.
func TestConcurrentSet(t *testing.T) {
	s := mustNew(t, DefaultConfig())
	var last uint64
	s.Subscribe(func(snap *scheduling.Snapshot) {
		if snap.Version() > 0 && snap.Version() != last+1 {
			t.Errorf("version %d after %d", snap.Version(), last)
		}
		last = snap.Version() // the race detector reports overlapping calls
	})
	var setting sync.WaitGroup
	for _, address := range []string{"10.0.0.1:80", "10.0.0.2:80", "10.0.0.3:80", "10.0.0.4:80"} {
		setting.Go(func() {
			for range 100 {
				s.Set(at(address))
				s.Current()
			}
		})
	}
	setting.Wait()
	if last == 0 || last != s.Current().Version() {
		t.Errorf("last version %d, current %d", last, s.Current().Version())
	}
}

func TestConfigValidate(t *testing.T) {
	if err := DefaultConfig().Validate(); err != nil {
		t.Fatal(err)
	}
	config := Config{Endpoints: []string{"nowhere:1"}, File: "x", Probe: ProbeConfig{Enabled: true, Path: "health"}}
	err := config.Validate()
	if err == nil {
		t.Fatal("valid")
	}
	for _, want := range []string{
		"Endpoints: File is given already; use one of the two", `Endpoints: "nowhere:1"`,
		`Probe.Path: "health": must begin with a slash`, "Probe.Interval: 0s: must be at least 100ms",
		"Probe.Timeout: 0s: must be above 0s", "Probe.FailureThreshold: 0: must be at least 1",
		"Probe.SuccessThreshold: 0: must be at least 1",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
	if _, err := New(config, logr.Discard()); err == nil {
		t.Error("New takes it")
	}
	config = Config{Probe: ProbeConfig{Path: "ignored while probing is off"}}
	if err := config.Validate(); err != nil {
		t.Error(err)
	}
}
