package scrape

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/go-logr/logr"

	"github.com/weir-epp/weir/internal/due"
	"github.com/weir-epp/weir/internal/heap"
	"github.com/weir-epp/weir/pkg/scheduling"
)

// maxScrapes is the largest number of concurrent scrapes; others wait, earliest due time first. Hanging endpoints are
// asked every 15 s, so with this limit even 1,500 of them delay no other endpoint.
const maxScrapes = 256

// slowest is the longest time between two scrapes of an endpoint with an unreadable page.
const slowest = 15 * time.Second

// Parts are a Scraper's calls to its owner.
type Parts struct {
	// Own returns Weir's own count of the requests in flight at an endpoint.
	Own func(id scheduling.EndpointID) int
	// Told is called with an endpoint's signals and its foreign load in requests: after every successful scrape, and
	// when the last reading becomes old. It is called by one goroutine at a time for each endpoint, and a last time
	// with zero values when the scraper stops leading.
	Told func(id scheduling.EndpointID, signals scheduling.Signals, foreign int)
	// Listed is called with the content of an endpoint's list of models when it changes, by one goroutine at a time for
	// each endpoint. Nil: no list is read, and no engine is asked for its slots.
	Listed func(id scheduling.EndpointID, listing Listing)
	// Failed is called once for every failed scrape.
	Failed func(Reason)
}

// Status is the state of an endpoint's page.
type Status struct {
	Reading
	// At is the time of the newest page; zero: none was read.
	At time.Time
	// Err is the error of the last scrape, or nil.
	Err error
}

// Scraper reads the metrics pages of the followed endpoints. Its methods are safe for concurrent use.
type Scraper struct {
	config Config
	parts  Parts
	log    logr.Logger
	most   int // scrapes at once
	fetch  func(ctx context.Context, url string) (Reading, error)
	urlOf  func(address string, attempt int) string

	listing func(ctx context.Context, url string) (Listing, error)
	stated  func(ctx context.Context, engine, root string) (slots int32, err error)
	root    func(address string) string

	close func()

	wake chan struct{} // of capacity 1: the earliest due time has changed

	mu      sync.Mutex
	leads   bool
	targets map[scheduling.EndpointID]*target
	due     heap.Heap[*target] // targets not being scraped
}

// target is a ready endpoint.
type target struct {
	id      scheduling.EndpointID
	address string
	due     time.Time
	number  int32 // in the heap; 0 while it is being scraped

	// State of the list of models, for the running scrape.
	list    time.Time // its models are not listed before this time
	listing Listing   // as last passed to the owner
	engine  string    // by its last page
	slots   int32     // that the engine states; 0: none
	absurd  bool      // a warning has been logged that they are unreadable
	lora    *scheduling.AdapterState

	unloaded *scheduling.Unloaded // of the listing; equal statements are one value

	status Status // this and the next are guarded by the scraper's mu
	stop   func() // ends the running scrape; nil: none

	// telling is held during calls to the owner, and guards the rest. The owner may hold a lock of its own when it
	// calls the scraper, so the scraper's mu is acquired after telling, and never held during calls to the owner.
	telling  sync.Mutex
	load     load
	attempt  int  // which of the paths is asked for
	failures int  // in a row
	warned   bool // of the failures since the last success
	told     bool // the owner has got values other than zero
}

func (t *target) Key() heap.Key { return heap.At(t.due) }

func (t *target) Handle() *int32 { return &t.number }

// New returns a scraper that follows nothing, and leads.
func New(config Config, parts Parts, log logr.Logger) *Scraper {
	f := newFetcher(config)
	return &Scraper{
		config: config, parts: parts, log: log, most: scrapesAtOnce(),
		fetch: f.fetch, urlOf: f.urlOf, listing: f.listing, stated: f.stated, root: f.root, close: f.close,
		wake: make(chan struct{}, 1), leads: true, targets: map[scheduling.EndpointID]*target{},
	}
}

// scrapesAtOnce returns maxScrapes, or an eighth of the process's limit on open files if that is less.
func scrapesAtOnce() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return maxScrapes
	}
	return int(max(1, min(maxScrapes, limit.Cur/8)))
}

// Follow makes the ready endpoints of a snapshot the targets. A new one is scraped within an interval; an endpoint that
// returns or has a new address counts as new.
func (s *Scraper) Follow(snapshot *scheduling.Snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	next := make(map[scheduling.EndpointID]*target, snapshot.Len())
	for i := range snapshot.Len() {
		e := snapshot.At(i)
		if !e.Ready {
			continue
		}
		t := s.targets[e.ID]
		if t == nil || t.address != e.Address {
			t = &target{id: e.ID, address: e.Address, due: now.Add(s.somewhere())}
			s.due.Push(t)
		}
		next[e.ID] = t
	}
	for id, t := range s.targets {
		switch {
		case next[id] == t:
		case t.number != 0:
			s.due.Remove(t)
		case t.stop != nil:
			t.stop()
		}
	}
	s.targets = next
	due.Wake(s.wake)
}

// somewhere returns a random part of the interval, so that the scrapes of many endpoints are spread over it.
func (s *Scraper) somewhere() time.Duration {
	return time.Duration(rand.Int64N(int64(s.config.Interval)))
}

// Lead sets whether the scraper leads. While it does not lead, another replica scrapes, and its own readings are
// forgotten.
func (s *Scraper) Lead(leads bool) {
	for _, t := range s.lead(leads) {
		t.telling.Lock()
		if s.idle() {
			t.forget(s)
		}
		t.telling.Unlock()
	}
}

// lead sets whether the scraper leads, and returns the targets whose state must be forgotten.
func (s *Scraper) lead(leads bool) (forget []*target) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leads == leads {
		return nil
	}
	s.leads = leads
	now := time.Now()
	for t := range s.due.All() {
		t.due = now.Add(s.somewhere())
	}
	s.due.FixAll()
	if !leads {
		forget = slices.Collect(maps.Values(s.targets))
	}
	due.Wake(s.wake)
	return forget
}

// idle reports whether the scraper does not lead.
func (s *Scraper) idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.leads
}

// forget forgets the state of a target, and notifies the owner. The caller holds telling.
func (t *target) forget(s *Scraper) {
	t.load = load{}
	if t.told {
		t.told = false
		s.parts.Told(t.id, scheduling.Signals{}, 0)
	}
}

// Status returns the state of an endpoint's page; known is false if the endpoint is not followed.
func (s *Scraper) Status(id scheduling.EndpointID) (status Status, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.targets[id]
	if t == nil {
		return Status{}, false
	}
	return t.status, true
}

// Run scrapes until ctx is done and the last scrape has ended.
func (s *Scraper) Run(ctx context.Context) {
	defer s.close()
	due.Run(ctx, s.most, s.wake, s.next, s.scrape)
}

// next returns the next target to scrape, for due.Run; none while the scraper does not lead.
func (s *Scraper) next() (*target, time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.leads {
		return nil, 0
	}
	return due.First(&s.due, func(t *target) time.Time { return t.due })
}

// scrape reads one target's page, and passes the result to the owner.
func (s *Scraper) scrape(ctx context.Context, t *target) {
	began := time.Now()
	bounded, stop := context.WithTimeout(ctx, s.config.Timeout)
	s.begins(t, stop)
	own := s.parts.Own(t.id)
	url := s.urlOf(t.address, t.attempt)
	reading, err := s.fetch(bounded, url)
	ended := errors.Is(bounded.Err(), context.Canceled)
	after := s.parts.Own(t.id)
	stop()
	if ended {
		return // the program ends, or the endpoint has left
	}
	now := time.Now()
	if err == nil {
		t.engine = reading.Engine
	}
	s.list(ctx, t, answers(err))
	t.telling.Lock()
	defer t.telling.Unlock()
	if err == nil {
		t.load.observe(now, reading.Running+reading.Waiting, own, after)
		s.recovered(t, &reading)
	} else {
		s.failed(t, url, err)
	}
	if !s.again(t, now, s.after(t, began, now), reading, err) {
		return
	}
	switch {
	case s.idle():
		t.forget(s)
	case err == nil:
		t.told = true
		s.parts.Told(t.id, t.signals(&reading), t.load.foreign(now))
	case !t.told:
	case t.load.over(now):
		t.forget(s)
	case !t.load.known(now):
		s.parts.Told(t.id, scheduling.Signals{}, t.load.foreign(now))
	}
}

// signals returns a reading and the engine's other statements as scheduling.Signals. Equal statements of adapters share
// one value.
func (t *target) signals(r *Reading) scheduling.Signals {
	if !sameAdapters(t.lora, r.Adapters) {
		t.lora = r.Adapters
	}
	signals := r.signals()
	signals.Slots, signals.Adapters, signals.Unloaded = t.slots, t.lora, t.unloaded
	return signals
}

// begins notes the function that ends the scrape of a target, or calls it if the target was removed.
func (s *Scraper) begins(t *target, stop func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.stop = stop; s.targets[t.id] != t {
		stop()
	}
}

// again notes the result of a scrape, and makes the target due again at that time. It reports whether the endpoint is
// still followed; otherwise the owner has forgotten it.
func (s *Scraper) again(t *target, now, at time.Time, reading Reading, err error) (followed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.targets[t.id] != t {
		return false
	}
	if t.status.Err = err; err == nil {
		t.status = Status{Reading: reading, At: now}
	}
	t.due, t.stop = at, nil
	s.due.Push(t)
	due.Wake(s.wake)
	return true
}

// after returns when a target is due again: an interval after its last due time, and increasingly later if its page is
// unreadable and its last reading is forgotten.
func (s *Scraper) after(t *target, began, now time.Time) time.Time {
	wait := s.config.Interval
	if t.failures > 0 && t.load.over(now) {
		wait = min(wait<<min(t.failures, 10), max(slowest, wait))
	}
	jittered := wait - wait/10 + time.Duration(rand.Int64N(int64(wait/5)+1))
	if at := began.Add(jittered); at.After(now) {
		return at
	}
	return now.Add(time.Duration(rand.Int64N(int64(s.config.Interval/10) + 1)))
}

// recovered notes a successful reading of a target's page.
func (s *Scraper) recovered(t *target, r *Reading) {
	if t.warned {
		s.log.Info("the metrics of the endpoint can be read again", "address", t.address, "engine", r.Engine)
	} else if t.load.n == 1 {
		s.log.V(1).Info("the metrics of the endpoint are read", "address", t.address, "engine", r.Engine, "kvTokens", r.CacheTokens)
	}
	t.failures, t.warned = 0, false
}

// fewFailures is the first number of consecutive failures that is logged: an engine may restart, or be slow once.
const fewFailures = 3

// failed counts a failure, and warns of the third in a row.
func (s *Scraper) failed(t *target, url string, err error) {
	reason := reasonOf(err)
	s.parts.Failed(reason)
	if reason == BadStatus || reason == HTML || reason == NoKnownMetric {
		t.attempt++
	}
	if t.failures++; t.failures < fewFailures || t.warned {
		return
	}
	t.warned = true
	s.log.Info("WARNING: --scrape-path: the metrics of the endpoint cannot be read: Weir counts only its own requests there, and the bound stays",
		"address", t.address, "url", url, "reason", string(reason), "error", err.Error())
}
