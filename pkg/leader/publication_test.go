package leader

import (
	"context"
	"encoding/json"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// oneSlice is an EndpointSlice with versions, as an apiserver has it.
type oneSlice struct {
	mu      sync.Mutex
	slice   discoveryv1.EndpointSlice
	version int
	patches int
	before  func() // called once, before a patch
	away    bool
	refuses error
}

func newSlice() *oneSlice {
	return &oneSlice{slice: discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4}}
}

func (s *oneSlice) Get(_ context.Context) (*discoveryv1.EndpointSlice, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away {
		return nil, context.DeadlineExceeded
	}
	if s.refuses != nil {
		return nil, s.refuses
	}
	return s.slice.DeepCopy(), nil
}

func (s *oneSlice) Patch(_ context.Context, patch []byte) (*discoveryv1.EndpointSlice, error) {
	s.mu.Lock()
	before := s.before
	s.before = nil
	s.mu.Unlock()
	if before != nil {
		before()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var p discoveryv1.EndpointSlice
	if err := json.Unmarshal(patch, &p); err != nil {
		return nil, err
	}
	if p.ResourceVersion != s.slice.ResourceVersion {
		return nil, apierrors.NewConflict(schema.GroupResource{Resource: "endpointslices"}, "weir", nil)
	}
	s.patches++
	s.put(p.Endpoints)
	return s.slice.DeepCopy(), nil
}

func (s *oneSlice) put(entries []discoveryv1.Endpoint) {
	s.version++
	s.slice.Endpoints, s.slice.ResourceVersion = entries, strconv.Itoa(s.version)
}

// empty empties the slice, which an upgrade must not do.
func (s *oneSlice) empty() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(nil)
}

// goes makes the apiserver unreachable, or reachable again.
func (s *oneSlice) goes(away bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away = away
}

// at returns the names of the slice's pods.
func (s *oneSlice) at() (pods string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.slice.Endpoints {
		pods += e.TargetRef.Name + "@" + e.Addresses[0]
	}
	return pods
}

// publish runs the publication of a replica of this name until the test ends.
func (s *oneSlice) publish(t *testing.T, pod, address string) *Publication {
	t.Helper()
	me := Identity{Pod: pod, UID: "u-" + pod, Boot: "b", Address: address}
	p := NewPublication(DefaultConfig(), me, "ns", s, func() {}, logr.Discard())
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() { _ = p.Run(ctx) })
	t.Cleanup(func() { cancel(); done.Wait() })
	return p
}

func (s *oneSlice) want(t *testing.T, pods, when string) {
	t.Helper()
	synctest.Wait()
	if got := s.at(); got != pods {
		t.Errorf("the slice leads to %q %s, want %q", got, when, pods)
	}
}

// The slice has only the leader: a successor replaces the last one, whether that one has handed over or is simply gone.
// A leader that hands over writes nothing more, and learns when it has been replaced.
func TestPublication(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlice()
		a, b := s.publish(t, "a", "10.0.0.1"), s.publish(t, "b", "10.0.0.2")
		s.want(t, "", "before anybody leads")
		a.Lead(true)
		s.want(t, "a@10.0.0.1", "when a leads")
		e := s.slice.Endpoints[0]
		if e.TargetRef.Kind != "Pod" || e.TargetRef.Namespace != "ns" || string(e.TargetRef.UID) != "u-a" || !*e.Conditions.Ready {
			t.Errorf("the entry is %+v of %+v", e, e.TargetRef)
		}
		replaced := a.HandOver()
		time.Sleep(time.Minute)
		s.want(t, "a@10.0.0.1", "while there is no successor")
		if isClosed(replaced) {
			t.Error("a is told of a successor that is not there")
		}
		b.Lead(true)
		a.Lead(false)
		<-replaced
		s.want(t, "b@10.0.0.2", "when b leads")
		<-a.Withdraw()
		s.want(t, "b@10.0.0.2", "when a withdraws what is not there any more")
		c := s.publish(t, "c", "10.0.0.3") // b is killed
		c.Lead(true)
		s.want(t, "c@10.0.0.3", "when c leads")
		<-c.Withdraw()
		s.want(t, "", "when c has ended without a successor")
	})
}

// Others' changes of the slice last no longer than a retry period, and an unchanged slice is not written again.
func TestPublicationIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlice()
		a := s.publish(t, "a", "10.0.0.1")
		a.Lead(true)
		time.Sleep(time.Minute)
		synctest.Wait()
		if s.patches != 1 {
			t.Errorf("%d patches in a minute, want 1", s.patches)
		}
		s.empty()
		time.Sleep(DefaultConfig().RetryPeriod)
		s.want(t, "a@10.0.0.1", "a retry period after it was emptied")
		s.goes(true)
		time.Sleep(time.Minute)
		s.want(t, "a@10.0.0.1", "in an outage of the apiserver")
		s.goes(false)
		a.Lead(false)
		s.empty()
		time.Sleep(time.Minute)
		s.want(t, "", "when a follows")
	})
}

// The slower of two writers reads again: it does not replace unseen content.
func TestPublicationIsByVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlice()
		a, b := s.publish(t, "a", "10.0.0.1"), s.publish(t, "b", "10.0.0.2")
		a.Lead(true)
		synctest.Wait()
		s.mu.Lock()
		s.before = func() { b.Lead(true); time.Sleep(time.Second) } // a withdraws, and b is faster
		s.mu.Unlock()
		<-a.Withdraw()
		s.want(t, "b@10.0.0.2", "after both have written")
	})
}

// A slice that is gone, or no longer this replica's, does not delay an ending replica: a rollback removes it. An
// unreadable slice does, for a while.
func TestHandOverOfASliceThatIsGone(t *testing.T) {
	resource := schema.GroupResource{Group: "discovery.k8s.io", Resource: "endpointslices"}
	for name, refusal := range map[string]error{
		"gone": apierrors.NewNotFound(resource, "weir"), "not this replica's": apierrors.NewForbidden(resource, "weir", nil), "away": nil,
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newSlice()
			a := s.publish(t, "a", "10.0.0.1")
			a.Lead(true)
			synctest.Wait()
			s.mu.Lock()
			s.away, s.refuses = refusal == nil, refusal
			s.mu.Unlock()
			replaced := a.HandOver()
			time.Sleep(time.Minute)
			synctest.Wait()
			if isClosed(replaced) != (refusal != nil) {
				t.Errorf("%s: replaced: %t", name, isClosed(replaced))
			}
			withdrawn := a.Withdraw()
			time.Sleep(time.Minute)
			synctest.Wait()
			if isClosed(withdrawn) != (refusal != nil) {
				t.Errorf("%s: withdrawn: %t", name, isClosed(withdrawn))
			}
		})
	}
}

// An address of the other family is not entered: the apiserver would refuse it.
func TestPublicationOfTheOtherFamily(t *testing.T) {
	s := newSlice()
	for address, fits := range map[string]bool{"10.0.0.1": true, "2001:db8::1": false, "somewhere": false} {
		if err := takes(&s.slice, address); (err == nil) != fits {
			t.Errorf("%s: %v", address, err)
		}
	}
}
