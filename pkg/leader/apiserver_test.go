package leader

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var leaseResource = schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}

// apiserver keeps Leases like the real one, as far as this package can see: versions and UIDs, losers of races,
// selectors and pages, recorded times. test/kube has the same tests with the real one.
type apiserver struct {
	mu      sync.Mutex
	skew    time.Duration // of its clock
	leases  map[string]*coordinationv1.Lease
	version int
	calls   map[string]int // by verb
}

func newAPIServer() *apiserver {
	return &apiserver{leases: map[string]*coordinationv1.Lease{}, calls: map[string]int{}}
}

// client is a replica's connection to it.
type client struct {
	*apiserver
	mu   sync.Mutex
	away error         // what every request ends with
	hang bool          // every request waits for its end
	slow time.Duration // every request takes so long
	lost int           // so many writes succeed and are not answered

	quicker   bool           // another client deletes first what this one deletes
	forbidden string         // this verb is
	fails     map[string]int // by verb, so many requests fail
}

func (s *apiserver) client() *client { return &client{apiserver: s} }

// set changes the connection.
func (c *client) set(change func(*client)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(c)
}

// begin is the beginning of a request.
func (c *client) begin(ctx context.Context, verb string) error {
	c.mu.Lock()
	away, hang, slow := c.away, c.hang, c.slow
	if c.fails[verb] > 0 {
		c.fails[verb]--
		away = errAway
	}
	if c.forbidden == verb {
		away = apierrors.NewForbidden(leaseResource, "", errors.New(verb))
	}
	c.mu.Unlock()
	switch {
	case hang:
		<-ctx.Done()
	case slow > 0:
		select {
		case <-ctx.Done():
		case <-time.After(slow):
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if away != nil {
		return away
	}
	c.apiserver.mu.Lock()
	defer c.apiserver.mu.Unlock()
	c.calls[verb]++
	return nil
}

// end is the end of a write.
func (c *client) end(l *coordinationv1.Lease, err error) (*coordinationv1.Lease, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil && c.lost > 0 {
		c.lost--
		return nil, context.DeadlineExceeded
	}
	return l, err
}

func (c *client) Get(ctx context.Context, name string) (*coordinationv1.Lease, error) {
	if err := c.begin(ctx, "get"); err != nil {
		return nil, err
	}
	return c.get(name)
}

func (s *apiserver) get(name string) (*coordinationv1.Lease, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.leases[name]; l != nil {
		return l.DeepCopy(), nil
	}
	return nil, apierrors.NewNotFound(leaseResource, name)
}

func (c *client) List(ctx context.Context, selector string, limit int) ([]coordinationv1.Lease, bool, error) {
	if err := c.begin(ctx, "list"); err != nil {
		return nil, false, err
	}
	selects, err := labels.Parse(selector)
	if err != nil {
		return nil, false, apierrors.NewBadRequest(err.Error())
	}
	c.apiserver.mu.Lock()
	defer c.apiserver.mu.Unlock()
	var list []coordinationv1.Lease
	for _, name := range slices.Sorted(maps.Keys(c.leases)) {
		if l := c.leases[name]; selects.Matches(labels.Set(l.Labels)) {
			list = append(list, *l.DeepCopy())
		}
	}
	return list[:min(limit, len(list))], len(list) > limit, nil
}

func (c *client) Create(ctx context.Context, l *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	if err := c.begin(ctx, "create"); err != nil {
		return nil, err
	}
	return c.end(c.create(l))
}

func (s *apiserver) create(l *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leases[l.Name] != nil {
		return nil, apierrors.NewAlreadyExists(leaseResource, l.Name)
	}
	return s.write(l, types.UID(fmt.Sprint("uid-", s.version))), nil
}

func (c *client) Update(ctx context.Context, l *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	if err := c.begin(ctx, "update"); err != nil {
		return nil, err
	}
	return c.end(c.update(l))
}

func (s *apiserver) update(l *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.replace(l)
}

// replace is an update; the caller holds mu.
func (s *apiserver) replace(l *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	old := s.leases[l.Name]
	switch {
	case old == nil: // as TestLeasesAreReplacedByTheirVersion of test/kube finds
		return nil, apierrors.NewConflict(leaseResource, l.Name, fmt.Errorf("%s is gone", l.UID))
	case l.ResourceVersion != old.ResourceVersion || l.UID != old.UID:
		return nil, apierrors.NewConflict(leaseResource, l.Name, fmt.Errorf("%s is not %s", l.ResourceVersion, old.ResourceVersion))
	}
	return s.write(l, old.UID), nil
}

func (c *client) Delete(ctx context.Context, l *coordinationv1.Lease) error {
	if err := c.begin(ctx, "delete"); err != nil {
		return err
	}
	c.apiserver.mu.Lock()
	defer c.apiserver.mu.Unlock()
	if c.quicker {
		delete(c.leases, l.Name)
	}
	old := c.leases[l.Name]
	switch {
	case old == nil:
		return apierrors.NewNotFound(leaseResource, l.Name)
	case l.ResourceVersion != old.ResourceVersion || l.UID != old.UID:
		return apierrors.NewConflict(leaseResource, l.Name, fmt.Errorf("%s is not %s", l.ResourceVersion, old.ResourceVersion))
	}
	delete(c.leases, l.Name)
	return nil
}

// write stores a Lease as its newest version.
func (s *apiserver) write(l *coordinationv1.Lease, uid types.UID) *coordinationv1.Lease {
	s.version++
	l = l.DeepCopy()
	l.UID, l.ResourceVersion = uid, strconv.Itoa(s.version)
	at := metav1.NewTime(time.Now().Add(s.skew).Truncate(time.Second))
	l.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "epp", Operation: metav1.ManagedFieldsOperationUpdate, Time: &at}}
	s.leases[l.Name] = l
	return l.DeepCopy()
}

// edit changes a Lease like another client, which retries until no replica's write has come between.
func (s *apiserver) edit(t *testing.T, name string, change func(*coordinationv1.Lease)) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.leases[name].DeepCopy()
	if l == nil {
		t.Fatalf("there is no Lease %s", name)
	}
	change(l)
	if _, err := s.replace(l); err != nil {
		t.Fatal(err)
	}
}

// remove deletes a Lease like another client.
func (s *apiserver) remove(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.leases, name)
}

// names returns the names of all Leases, in order.
func (s *apiserver) names() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(slices.Sorted(maps.Keys(s.leases)), " ")
}

// called returns the number of answered requests with a verb.
func (s *apiserver) called(verb string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[verb]
}

func (s *apiserver) holder(name string) string {
	l, err := s.get(name)
	if err != nil {
		return err.Error()
	}
	return holderOf(l)
}
