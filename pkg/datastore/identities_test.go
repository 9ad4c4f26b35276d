package datastore

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"

	"github.com/weir-epp/weir/pkg/scheduling"
)

// idAt returns the ID of the endpoint at an address.
func idAt(t testing.TB, s *Store, address string) scheduling.EndpointID {
	t.Helper()
	e, ok := s.Current().ByAddress(address)
	if !ok {
		t.Fatalf("%s is not in the pool", address)
	}
	return e.ID
}

// end ends the store's delayed work, as the end of the program does.
func end(s *Store) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = s.Run(ctx)
}

// ofPod is a pod's endpoint.
func ofPod(uid, address string, ready bool) scheduling.Endpoint {
	return scheduling.Endpoint{Key: uid + ":80", Address: address, Ready: ready}
}

// leases stands for the controller: it knows where requests are in flight.
type leases struct {
	mu    sync.Mutex // the store asks from a goroutine of its own
	at    map[scheduling.EndpointID]bool
	asked int // the most endpoints in one question
}

func (l *leases) inUse(departed []scheduling.EndpointID) (inUse []scheduling.EndpointID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked = max(l.asked, len(departed))
	for _, id := range departed {
		if l.at[id] {
			inUse = append(inUse, id)
		}
	}
	return inUse
}

// hold replaces the endpoints with a request in flight.
func (l *leases) hold(ids ...scheduling.EndpointID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.at)
	for _, id := range ids {
		l.at[id] = true
	}
}

func withLeases(t *testing.T) (*Store, *leases) {
	l := &leases{at: map[scheduling.EndpointID]bool{}}
	config := DefaultConfig()
	config.InUse = l.inUse
	return mustNew(t, config), l
}

// A pod that gets the address of another one is another endpoint, which begins with nothing in flight. The old one keeps
// its identity until its last request has ended.
func TestAnAddressOfAnotherPod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const address = "10.0.0.1:80"
		s, leases := withLeases(t)
		defer end(s)
		s.Set([]scheduling.Endpoint{ofPod("old", address, true)})
		old := idAt(t, s, address)
		leases.hold(old)
		s.Set([]scheduling.Endpoint{ofPod("new", address, true)})
		fresh := idAt(t, s, address)
		if fresh == old {
			t.Fatal("the new pod has the old one's identity, and with it its requests")
		}
		s.Set([]scheduling.Endpoint{ofPod("old", address, true)}) // for example: its label was changed, and changed back
		if idAt(t, s, address) != old {
			t.Error("the old pod is back with requests in flight, but they do not count")
		}
		s.Set([]scheduling.Endpoint{ofPod("new", address, true)})
		leases.hold()
		pass(forgetTime)
		s.Set([]scheduling.Endpoint{ofPod("old", address, true)})
		if id := idAt(t, s, address); id == old || id == fresh {
			t.Errorf("endpoint %d was forgotten, but its ID is given again at once", id)
		}
	})
}

// A pod is the same endpoint with another address: the kubelet may make its sandbox again.
func TestAPodWithAnotherAddress(t *testing.T) {
	s := mustNew(t, DefaultConfig())
	s.Set([]scheduling.Endpoint{ofPod("a", "10.0.0.1:80", true)})
	before := idAt(t, s, "10.0.0.1:80")
	s.Set([]scheduling.Endpoint{ofPod("a", "10.0.0.2:80", true)})
	if idAt(t, s, "10.0.0.2:80") != before {
		t.Error("another endpoint")
	}
	wantSeen(t, s.Current(), "10.0.0.2:80")
}

// Two pods of a list may have one address, for example when one on the host's network replaces another.
func TestTwoPodsAtOneAddress(t *testing.T) {
	const address = "10.0.0.1:80"
	var lines []string
	s, err := New(DefaultConfig(), funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		why  string
		list []scheduling.Endpoint
		used string
	}{
		{"the ready one", []scheduling.Endpoint{ofPod("old", address, true), ofPod("new", address, false)}, "old:80"},
		{"the newest of two that are ready", []scheduling.Endpoint{ofPod("old", address, true), ofPod("new", address, true)}, "new:80"},
		{"the newest if none is", []scheduling.Endpoint{ofPod("old", address, false), ofPod("new", address, false)}, "new:80"},
		{"however written", []scheduling.Endpoint{ofPod("old", "[::ffff:10.0.0.1]:80", true), ofPod("new", address, false)}, "old:80"},
	} {
		s.Set(c.list)
		e, ok := s.Current().ByAddress(address)
		if !ok || e.Key != c.used || s.Current().Len() != 1 {
			t.Errorf("%s: %+v of %d", c.why, e, s.Current().Len())
		}
	}
	if len(lines) != 1 || !strings.Contains(lines[0], `"endpoints"=2 "oldest"="old:80" "newest"="new:80" "used"="old:80"`) {
		t.Errorf("logged, of one pair of pods: %q", lines)
	}
}

// However many pods have one address, what is said of them is short.
func TestManyPodsAtOneAddress(t *testing.T) {
	longest := 0
	s, err := New(DefaultConfig(), funcr.New(func(_, line string) { longest = max(longest, len(line)) }, funcr.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	var list []scheduling.Endpoint
	for i := range 5000 {
		list = append(list, ofPod(fmt.Sprint("pod", i), "10.0.0.1:80", true))
	}
	s.Set(list)
	if s.Current().Len() != 1 || longest == 0 || longest > 500 {
		t.Errorf("%d endpoints, %d bytes logged", s.Current().Len(), longest)
	}
}

// A source that lists a key twice does no harm.
func TestOneKeyTwice(t *testing.T) {
	s := mustNew(t, DefaultConfig())
	s.Set([]scheduling.Endpoint{ofPod("a", "10.0.0.1:80", true), ofPod("a", "10.0.0.2:80", true)})
	wantSeen(t, s.Current(), "10.0.0.1:80")
}

// After any number of pods came and went, nothing of them is left; and the lock is never held for many of them at once.
func TestForgetsPodsThatWent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const pods = 10_000
		s, leases := withLeases(t)
		defer end(s)
		for i := 0; i < pods; i += 500 {
			var list []scheduling.Endpoint
			for pod := i; pod < i+500; pod++ {
				list = append(list, ofPod(fmt.Sprint("pod-", pod), fmt.Sprintf("10.0.%d.%d:80", pod%500/250, pod%250), true))
			}
			s.Set(list)
			for at := range s.Current().Len() { // each gets a request, which outlives it for a while
				leases.hold(s.Current().At(at).ID)
			}
		}
		s.Set(nil)
		leases.hold()
		time.Sleep(forgetTime)
		synctest.Wait()
		if n := len(s.identities.byKey) + len(s.identities.used) + len(s.shared) + len(s.listed); n != 0 {
			t.Errorf("%d traces are left", n)
		}
		if s.forgetting != nil {
			t.Error("a timer stands, although nothing is to be forgotten")
		}
		if leases.asked > askAtOnce {
			t.Errorf("%d endpoints in one question", leases.asked)
		}
	})
}

// When all IDs were given, those that are free come again; those in use do not.
func TestIDsComeAgain(t *testing.T) {
	ids := newIdentities()
	ids.list()
	first, _ := ids.of("first")
	ids.next = maxEndpointID
	var got []scheduling.EndpointID
	for i := range 3 {
		id, _ := ids.of(fmt.Sprint(i))
		got = append(got, id)
	}
	if first != 0 || !slices.Equal(got, []scheduling.EndpointID{maxEndpointID, 1, 2}) {
		t.Errorf("%d, then %d", first, got)
	}
	ids = newIdentities()
	ids.list()
	ids.next = maxEndpointID
	last, _ := ids.of("last")
	if next, _ := ids.of("next"); last != maxEndpointID || next != 0 {
		t.Errorf("after ID %d comes %d, though 0 is free", last, next)
	}
	if r := scheduling.Reserved(maxEndpointID); r.Endpoint() != maxEndpointID {
		t.Errorf("a reservation of the largest ID holds %d", r.Endpoint())
	}
}
