package app

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/weir-epp/weir/pkg/datastore/scrape"
	"github.com/weir-epp/weir/pkg/extproc"
	"github.com/weir-epp/weir/pkg/request"
	"github.com/weir-epp/weir/pkg/scheduling"
)

// A request goes to an engine with enough context: to all engines, or to the long ones. A prompt too long for all of
// them is rejected.
func TestRequestsGoWhereTheyFit(t *testing.T) {
	p := new(Pool)
	s, err := scheduling.New(scheduling.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	endpoint := func(id int, ready bool, models ...string) scheduling.Endpoint {
		return scheduling.Endpoint{ID: scheduling.EndpointID(id), Address: fmt.Sprintf("10.0.0.%d:80", id), Ready: ready, Models: models}
	}
	use := func(all ...scheduling.Endpoint) { p.prepared.Store(newPrepared(s, scheduling.NewSnapshot(1, all))) }
	pick := picker{prepared: &p.prepared, lengths: &p.lengths}
	confined := func(model string, least, likely int64, subset ...string) (members []string, err error) {
		t.Helper()
		got, err := pick.Confine(model, request.Subset{Set: len(subset) > 0, Members: subset}, extproc.Length{Least: least, Likely: likely})
		if got == nil {
			return nil, err
		}
		return got.Members, err
	}
	want := func(what string, members []string, err error, wanted ...string) {
		t.Helper()
		if err != nil || !slices.Equal(members, wanted) {
			t.Errorf("%s: %v, %v, want %v", what, members, err, wanted)
		}
	}
	use(endpoint(1, true, "m"), endpoint(2, true, "m"), endpoint(3, true, "m"), endpoint(4, true, "other"))
	members, err := confined("m", 1<<20, 1<<20)
	want("no endpoint has stated a length", members, err)
	for id, longest := range map[int]int64{1: 4096, 2: 32768, 3: 32768, 4: 1 << 20} {
		p.lists(scheduling.EndpointID(id), scrape.Listing{Longest: longest})
	}
	for _, test := range []struct {
		what          string
		least, likely int64
		subset        []string
		want          []string
	}{
		{"short", 10, 4096, nil, nil},
		{"it fits the long ones", 10, 4097, nil, []string{"10.0.0.2:80", "10.0.0.3:80"}},
		{"within its subset", 10, 5000, []string{"10.0.0.3"}, nil},
		{"a part of its subset", 10, 5000, []string{"10.0.0.1:80", "10.0.0.3:80"}, []string{"10.0.0.3:80"}},
		{"it fits nowhere by the estimate", 10, 40000, nil, []string{"10.0.0.2:80", "10.0.0.3:80"}},
		{"it fits nowhere in its subset by the estimate", 10, 40000, []string{"10.0.0.1:80"}, []string{"10.0.0.1:80"}},
	} {
		members, err := confined("m", test.least, test.likely, test.subset...)
		want(test.what, members, err, test.want...)
	}
	long := new(extproc.TooLongError)
	if _, err := confined("m", 32769, 40000); !errors.As(err, &long) || long.Most != 32768 || long.Least != 32769 {
		t.Errorf("it fits nowhere: %v", err)
	}
	if _, err := confined("m", 32768, 40000); err != nil {
		t.Errorf("it just fits: %v", err)
	}
	members, err = confined("other", 32769, 40000)
	want("another model's endpoint takes more", members, err)

	use(endpoint(1, true, "m"), endpoint(2, true, "m"), endpoint(5, false, "m"))
	members, err = confined("m", 32769, 40000)
	want("one that is not ready may take more", members, err)
	p.mu.Lock()
	p.forgetLengths(map[scheduling.EndpointID]bool{1: true})
	p.mu.Unlock()
	members, err = confined("m", 10, 5000)
	want("of one nothing is known any more", members, err, "10.0.0.2:80")
	p.lists(1, scrape.Listing{})
	members, err = confined("m", 1<<20, 1<<20)
	want("none states a length any more", members, err)
}
