package datastore

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"

	"github.com/weir-epp/weir/pkg/scheduling"
)

// Store holds the pool and publishes snapshots of it. All methods are safe for concurrent use.
type Store struct {
	config Config
	log    logr.Logger

	current atomic.Pointer[scheduling.Snapshot]
	invalid atomic.Pointer[error]

	// mu orders publications. Subscribers are called while it is held.
	mu          sync.Mutex
	listed      []scheduling.Endpoint            // as the source lists them, sorted by ID
	ids         map[string]scheduling.EndpointID // by canonical address; entries are never removed
	subscribers []func(*scheduling.Snapshot)
	prober      *prober   // nil if probing is off
	gathering   gathering // delays publications that can wait
}

// New returns a store with the endpoints that the configuration lists, or that its file holds now. A missing or invalid
// file is an error.
func New(config Config, log logr.Logger) (*Store, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	s := &Store{config: config, log: log, ids: map[string]scheduling.EndpointID{}}
	s.current.Store(scheduling.NewSnapshot(0, nil))
	if config.Probe.Enabled {
		s.prober = newProber(config.Probe, log, s.republish)
	}
	switch {
	case config.File != "":
		endpoints, err := loadEndpoints(config.File)
		if err != nil {
			return nil, err
		}
		s.Set(endpoints)
	case len(config.Endpoints) > 0:
		endpoints, err := ParseEndpoints(config.Endpoints)
		if err != nil {
			return nil, err
		}
		s.Set(endpoints)
	}
	return s, nil
}

// Current returns the newest snapshot; before the first publication it is empty and has version 0.
func (s *Store) Current() *scheduling.Snapshot { return s.current.Load() }

// Subscribe calls changed with the current snapshot now and with every later one, in order and one call at a time.
// changed must be quick and must not call Set or Subscribe.
func (s *Store) Subscribe(changed func(*scheduling.Snapshot)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.subscribers = append(s.subscribers, changed)
	changed(s.current.Load())
}

// Set replaces the whole pool. It assigns the IDs, ignoring those in the values, and makes the addresses canonical.
// Ready is what the source knows; with probing on, an endpoint also needs a successful probe. If an address occurs
// twice, the ready one wins, or else the first. An unchanged pool is not published again, and a change that only adds
// may be published up to gatherTime later, together with others.
func (s *Store) Set(endpoints []scheduling.Endpoint) {
	s.mu.Lock()
	defer s.mu.Unlock()
	listed := make([]scheduling.Endpoint, 0, len(endpoints))
	index := make(map[scheduling.EndpointID]int, len(endpoints))
	for _, e := range endpoints {
		e.Address = scheduling.ParseHostPort(e.Address).String()
		e.ID = s.idOf(e.Address)
		e.Models, e.Labels = slices.Clone(e.Models), maps.Clone(e.Labels)
		if i, twice := index[e.ID]; !twice {
			index[e.ID] = len(listed)
			listed = append(listed, e)
		} else if e.Ready && !listed[i].Ready {
			listed[i] = e
		}
	}
	slices.SortFunc(listed, func(a, b scheduling.Endpoint) int { return cmp.Compare(a.ID, b.ID) })
	s.listed = listed
	if s.prober != nil {
		s.prober.follow(listed)
	}
	s.publish()
}

// idOf returns the ID of a canonical address. An address keeps its ID for good.
func (s *Store) idOf(address string) scheduling.EndpointID {
	id, known := s.ids[address]
	if !known {
		id = scheduling.EndpointID(len(s.ids))
		s.ids[address] = id
	}
	return id
}

// gathered publishes what was delayed.
func (s *Store) gathered() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gathering.timer = nil
	s.publish()
}

// republish is called when a probe has changed an endpoint's readiness.
func (s *Store) republish() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.publish()
}

// publish publishes a new snapshot if it differs from the current one, or leaves it to the gathering. The caller holds
// mu.
func (s *Store) publish() {
	endpoints := slices.Clone(s.listed)
	if s.prober != nil {
		for i := range endpoints {
			endpoints[i].Ready = endpoints[i].Ready && s.prober.healthy(endpoints[i].Address)
		}
	}
	old := s.current.Load()
	if sameEndpoints(old, endpoints) || canWait(old, endpoints) && s.gathering.defers(time.Now(), s.gathered) {
		return
	}
	s.gathering.published(time.Now())
	snap := scheduling.NewSnapshot(old.Version()+1, endpoints)
	s.current.Store(snap)
	for _, changed := range s.subscribers {
		changed(snap)
	}
}

// sameEndpoints reports whether a snapshot holds exactly these endpoints, which are sorted by ID.
func sameEndpoints(snap *scheduling.Snapshot, endpoints []scheduling.Endpoint) bool {
	if snap.Len() != len(endpoints) {
		return false
	}
	for i, e := range endpoints {
		if !sameEndpoint(snap.At(i), e) {
			return false
		}
	}
	return true
}

func sameEndpoint(a, b scheduling.Endpoint) bool {
	return a.ID == b.ID && a.Address == b.Address && a.Slots == b.Slots && a.Ready == b.Ready &&
		a.LowerBound == b.LowerBound && a.UpperBound == b.UpperBound && a.MaxInFlight == b.MaxInFlight &&
		slices.Equal(a.Models, b.Models) && maps.Equal(a.Labels, b.Labels)
}

// Invalid returns what is wrong with the endpoints file now, or nil if nothing is or there is no file. While it is not
// nil, the pool is the last good one.
func (s *Store) Invalid() error {
	if err := s.invalid.Load(); err != nil {
		return *err
	}
	return nil
}

// Follow registers the endpoints file, if there is one, with files. It must be called before files.Run.
func (s *Store) Follow(files *Files) error {
	if s.config.File == "" {
		return nil
	}
	return files.Follow(s.config.File, s.fileChanged)
}

// Run probes the endpoints, if that is configured, until ctx is done. It returns nil, after its goroutines have ended;
// from then on only Set publishes.
func (s *Store) Run(ctx context.Context) error {
	if s.prober != nil {
		s.prober.run(ctx)
	}
	<-ctx.Done()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gathering.end()
	return nil
}
