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
	listed      []scheduling.Endpoint // the source's list, sorted by ID
	identities  identities
	shared      map[string]sharing // addresses of several endpoints, as last logged
	subscribers []func(*scheduling.Snapshot)
	prober      *prober     // nil if probing is off
	gathering   gathering   // delays publications that can wait
	forgetting  *time.Timer // of the next forget; nil if none is due
	ended       bool        // Run has returned
}

// New returns a store with the configuration's endpoints, or the present ones of its file. A missing or invalid file is
// an error.
func New(config Config, log logr.Logger) (*Store, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	s := &Store{config: config, log: log, identities: newIdentities()}
	s.current.Store(scheduling.NewSnapshot(0, nil))
	if config.Probe.Enabled {
		s.prober = newProber(config.Probe, log, s.republish)
	}
	endpoints, err := config.Listed()
	if err != nil {
		return nil, err
	}
	if config.File != "" || len(config.Endpoints) > 0 {
		s.Set(endpoints)
	}
	return s, nil
}

// Listed returns the configuration's endpoints, or the present ones of its file. A missing or invalid file is an error.
func (c *Config) Listed() ([]scheduling.Endpoint, error) {
	switch {
	case c.File != "":
		return loadEndpoints(c.File)
	case len(c.Endpoints) > 0:
		return ParseEndpoints(c.Endpoints)
	default:
		return nil, nil
	}
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

// Set replaces the whole pool. It assigns the IDs, ignoring those in the values, and makes the addresses canonical. An
// endpoint without a key gets its address as key. Ready is the source's statement; with probing on, an endpoint also
// needs a successful probe. If several endpoints have the same address, the last ready one wins: sources list the
// oldest first. An unchanged pool is not published again, and a change that only adds may be published up to gatherTime
// later, together with others.
func (s *Store) Set(endpoints []scheduling.Endpoint) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listed = s.identified(s.oneForEachAddress(endpoints))
	if s.prober != nil {
		s.prober.follow(s.listed)
	}
	s.publish()
	s.forget()
}

// sharing describes an address of several endpoints: their number, and the keys of two.
type sharing struct {
	n              int
	oldest, newest string
}

// oneForEachAddress returns the endpoints with canonical addresses and keys, without those that lose their address to
// another endpoint, and logs these addresses.
func (s *Store) oneForEachAddress(endpoints []scheduling.Endpoint) []scheduling.Endpoint {
	kept := make([]scheduling.Endpoint, 0, len(endpoints))
	index := make(map[string]int, len(endpoints))
	var shared map[string]sharing
	for _, e := range endpoints {
		e.Address = scheduling.ParseHostPort(e.Address).String()
		e.Key = cmp.Or(e.Key, e.Address)
		i, taken := index[e.Address]
		if !taken {
			index[e.Address] = len(kept)
			kept = append(kept, e)
			continue
		}
		if shared == nil {
			shared = map[string]sharing{}
		}
		before, more := shared[e.Address]
		if !more {
			before = sharing{n: 1, oldest: kept[i].Key}
		}
		shared[e.Address] = sharing{n: before.n + 1, oldest: before.oldest, newest: e.Key}
		if e.Ready || !kept[i].Ready {
			kept[i] = e
		}
	}
	for address, by := range shared {
		if s.shared[address] != by {
			s.log.Info("WARNING: several endpoints have the same address; the newest ready one is used",
				"address", address, "endpoints", by.n, "oldest", by.oldest, "newest", by.newest, "used", kept[index[address]].Key)
		}
	}
	s.shared = shared
	return kept
}

// identified gives the endpoints their IDs and returns them sorted by ID. It keeps the first of several endpoints with
// one key, which no source should list.
func (s *Store) identified(endpoints []scheduling.Endpoint) []scheduling.Endpoint {
	s.identities.list()
	listed := endpoints[:0]
	for _, e := range endpoints {
		var twice bool
		if e.ID, twice = s.identities.of(e.Key); twice {
			continue
		}
		e.Models, e.Labels = slices.Clone(e.Models), maps.Clone(e.Labels)
		listed = append(listed, e)
	}
	slices.SortFunc(listed, func(a, b scheduling.Endpoint) int { return cmp.Compare(a.ID, b.ID) })
	return listed
}

// forget forgets departed endpoints without requests in flight. While some still have requests, it is called again
// after forgetTime. The caller holds mu.
func (s *Store) forget() {
	s.identities.forget(s.Current(), s.config.InUse)
	if s.identities.departed() == 0 || s.ended {
		return
	}
	if s.forgetting == nil {
		s.forgetting = time.AfterFunc(forgetTime, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.forgetting = nil
			s.forget()
		})
	}
}

// gathered publishes the delayed changes.
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
			endpoints[i].Ready = endpoints[i].Ready && s.prober.healthy(endpoints[i].ID)
		}
	}
	old := s.current.Load()
	if sameEndpoints(old, endpoints) || canWait(old, endpoints) && s.gathering.defers(time.Now(), s.gathered) {
		return
	}
	s.gathering.published(time.Now())
	snap := old.Next(old.Version()+1, endpoints)
	s.current.Store(snap)
	for _, changed := range s.subscribers {
		changed(snap)
	}
}

// sameEndpoints reports whether a snapshot has exactly these endpoints, sorted by ID.
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
	return a.ID == b.ID && a.Key == b.Key && a.Address == b.Address && a.Slots == b.Slots && a.Ready == b.Ready &&
		a.MaxInFlight == b.MaxInFlight && a.Work == b.Work && a.PrefillTokens == b.PrefillTokens &&
		a.MaxBatchedTokens == b.MaxBatchedTokens &&
		a.Priority == b.Priority && a.Lacks == b.Lacks && a.LacksStated == b.LacksStated &&
		slices.Equal(a.Models, b.Models) && maps.Equal(a.Labels, b.Labels) && slices.Equal(a.Taints, b.Taints)
}

// Invalid returns the present problems of the endpoints file, or nil without problems or a file. With problems, the
// pool is the last good one.
func (s *Store) Invalid() error {
	if err := s.invalid.Load(); err != nil {
		return *err
	}
	return nil
}

// ProbeH2C makes the probes, if any, use HTTP/2 without TLS, or HTTP/1.1.
func (s *Store) ProbeH2C(h2c bool) {
	if s.prober != nil {
		s.prober.h2c.Store(h2c)
	}
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
	s.ended = true
	if s.forgetting != nil {
		s.forgetting.Stop()
	}
	return nil
}
