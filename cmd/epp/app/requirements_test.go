package app

import (
	"sync/atomic"
	"testing"

	"github.com/weir-epp/weir/pkg/request"
	"github.com/weir-epp/weir/pkg/scheduling"
)

// A request goes to endpoints of its subset with its labels and without a taint that it does not tolerate. If all of
// the subset qualify, the subset stays unchanged.
func TestRequire(t *testing.T) {
	s, err := scheduling.New(scheduling.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	var now atomic.Pointer[prepared]
	use := func(all ...scheduling.Endpoint) {
		for i := range all {
			all[i].ID, all[i].Ready = scheduling.EndpointID(i), true
		}
		now.Store(newPrepared(s, scheduling.NewSnapshot(1, all)))
	}
	pick := picker{prepared: &now}
	type labels = map[string]string
	label := func(name, value string) []request.Label { return []request.Label{{Name: name, Value: value}} }
	use(scheduling.Endpoint{Address: "10.0.0.1:80", Labels: labels{"zone": "a"}}, scheduling.Endpoint{Address: "10.0.0.2:80", Labels: labels{"zone": "b"}})
	if got := pick.Require(request.Subset{}, &request.Requirements{}); got.Set {
		t.Errorf("without requirements: %+v", got)
	}
	use(scheduling.Endpoint{Address: "10.0.0.1:80", Labels: labels{"zone": "a"}},
		scheduling.Endpoint{Address: "10.0.0.2:80", Labels: labels{"zone": "b"}, Taints: []string{"old"}},
		scheduling.Endpoint{Address: "10.0.0.3:80", Labels: labels{"zone": "a"}, Taints: []string{"old", "spot"}})
	for _, c := range []struct {
		why    string
		subset []string
		need   request.Requirements
		want   string // the last byte of each address
		unset  bool
	}{
		{"nothing", nil, request.Requirements{}, "1", false},
		{"a label", nil, request.Requirements{Labels: label("zone", "a")}, "1", false},
		{"a label that none has", nil, request.Requirements{Labels: label("zone", "c")}, "", false},
		{"a name that none has", nil, request.Requirements{Labels: label("rack", "")}, "", false},
		{"one taint", nil, request.Requirements{Tolerates: []string{"old"}}, "12", false},
		{"all taints", nil, request.Requirements{Tolerates: []string{"spot", "old"}}, "", true},
		{"a label beside a taint", nil, request.Requirements{Labels: label("zone", "b"), Tolerates: []string{"old"}}, "2", false},
		{"within a subset", []string{"10.0.0.2", "10.0.0.1:80"}, request.Requirements{}, "1", false},
		{"a subset that all meet", []string{"10.0.0.1:80"}, request.Requirements{Labels: label("zone", "a")}, "1", false},
		{"a subset that none meets", []string{"10.0.0.3:80"}, request.Requirements{}, "", false},
	} {
		got := pick.Require(request.Subset{Set: c.subset != nil, Members: c.subset}, &c.need)
		last := ""
		for _, m := range got.Members {
			last += m[len(m)-4 : len(m)-3]
		}
		if last != c.want || got.Set == c.unset {
			t.Errorf("%s: %+v", c.why, got)
		}
	}
}
