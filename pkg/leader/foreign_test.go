package leader

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// lease is a replica's Lease in one version with a text as its record.
func lease(name string, version int, text string) coordinationv1.Lease {
	var l coordinationv1.Lease
	l.Name, l.UID, l.ResourceVersion = name, "u", strconv.Itoa(version)
	l.Annotations = map[string]string{Annotation: text}
	return l
}

func fresh(*coordinationv1.Lease) time.Duration { return 0 }

// requests returns others' requests in flight at each endpoint.
func (f *foreign) requests(now time.Time, endpoints []Endpoint) (n []int) {
	for _, h := range f.stock(now, endpoints) {
		n = append(n, h.Requests)
	}
	return n
}

// record is the text of a record: the requests of a process with this boot ID at endpoints.
func record(boot string, at map[string]int, earlier ...Earlier) string {
	total := 0
	for _, n := range at {
		total += n
	}
	return Record{Boot: boot, Time: epoch, InFlight: InFlight{Total: total, ByEndpoint: at}, Earlier: earlier}.encode()
}

// The amounts of a record fall to 0 in equal steps over the window; a newer record counts whole again.
func TestFall(t *testing.T) {
	f := newForeign(time.Minute, "me")
	two := []Endpoint{{Key: "a", Bound: 1}, {Key: "b", Bound: 1}}
	f.saw(epoch, []coordinationv1.Lease{lease("weir-x", 1, record("x", map[string]int{"a": 60, "b": 7}))}, fresh)
	for _, step := range []struct {
		after time.Duration
		a, b  int
	}{
		{0, 60, 7},
		{time.Second - 1, 60, 7},
		{time.Second, 59, 7}, // of 67 are left 65.9, rounded up
		{30 * time.Second, 30, 4},
		{59 * time.Second, 1, 1}, // 1.12
		{60*time.Second - 1, 1, 1},
		{time.Minute, 0, 0},
		{time.Hour, 0, 0},
	} {
		if got := f.requests(epoch.Add(step.after), two); got[0] != step.a || got[1] != step.b {
			t.Errorf("after %v: %v, want %d and %d", step.after, got, step.a, step.b)
		}
	}
	if at := f.next(epoch.Add(30 * time.Second)); at.Sub(epoch) != 31*time.Second {
		t.Errorf("at 30 s the next step is at %v", at.Sub(epoch))
	}
	if at := f.next(epoch.Add(time.Minute)); !at.IsZero() {
		t.Errorf("with nothing left there is a step at %v", at.Sub(epoch))
	}

	// The same record in a newer version of the Lease is not a newer record; a different one is.
	later := epoch.Add(30 * time.Second)
	f.saw(later, []coordinationv1.Lease{lease("weir-x", 2, record("x", map[string]int{"a": 60, "b": 7}))}, fresh)
	if got := f.requests(later, two); got[0] != 30 {
		t.Errorf("a renewed label made the record newer: %v", got)
	}
	f.saw(later, []coordinationv1.Lease{lease("weir-x", 3, record("x", map[string]int{"a": 50}))}, fresh)
	if got := f.requests(later, two); got[0] != 50 || got[1] != 0 {
		t.Errorf("after a newer record: %v", got)
	}
	// Without the Lease it continues to fall.
	f.saw(later.Add(time.Second), nil, fresh)
	if got := f.requests(later.Add(30*time.Second), two); got[0] != 25 {
		t.Errorf("30 s after the Lease went: %v", got)
	}
	f.saw(later.Add(time.Minute), nil, fresh)
	if len(f.replicas) != 0 {
		t.Errorf("%d replicas are remembered with nothing left of them", len(f.replicas))
	}
}

// Records of several processes add up, endpoint by endpoint; the own one does not count, earlier ones of the same pod do.
func TestForeignAddsUp(t *testing.T) {
	f := newForeign(time.Minute, "me")
	f.saw(epoch, []coordinationv1.Lease{
		lease("weir-x", 1, record("x", map[string]int{"a": 1, "b": 2})),
		lease("weir-y", 2, record("y", map[string]int{"b": 3, "gone": 9})),
		lease("weir-own", 3, record("me", map[string]int{"a": 100},
			Earlier{"before", 30, InFlight{Total: 8, ByEndpoint: map[string]int{"a": 8}}})),
	}, fresh)
	endpoints := []Endpoint{{Key: "a", Bound: 1}, {Key: "b", Bound: 1}, {Key: "c", Bound: 1}}
	if got := fmt.Sprint(f.requests(epoch, endpoints)); got != "[5 5 0]" { // 1 + 8/2; 2 + 3
		t.Error(got)
	}
	// Another replica's record does not change this process's own requests in flight.
	f.saw(epoch, []coordinationv1.Lease{
		lease("weir-y", 3, record("y", map[string]int{"b": 3, "gone": 9}, Earlier{"me", 0, InFlight{Total: 7, ByEndpoint: map[string]int{"a": 7}}})),
	}, fresh)
	if got := fmt.Sprint(f.requests(epoch, endpoints)); got != "[5 5 0]" {
		t.Error(got)
	}
	// weir-x restarts: its first process left 1 and 2 behind, the second has 4 in flight.
	f.saw(epoch, []coordinationv1.Lease{
		lease("weir-x", 4, record("x2", map[string]int{"c": 4},
			Earlier{"x", 0, InFlight{Total: 3, ByEndpoint: map[string]int{"a": 1, "b": 2}}})), // which is known
	}, fresh)
	if got := fmt.Sprint(f.requests(epoch, endpoints)); got != "[5 5 4]" {
		t.Error(got)
	}
}

// A record that exists when the reader starts counts with its rest at its age.
func TestOldRecords(t *testing.T) {
	endpoints := []Endpoint{{Key: "a", Bound: 1}}
	for age, want := range map[time.Duration]int{
		-time.Hour: 60, 0: 60, 15 * time.Second: 45, time.Minute: 0, 24 * time.Hour: 0,
	} {
		f := newForeign(time.Minute, "me")
		f.saw(epoch, []coordinationv1.Lease{lease("weir-x", 1, record("x", map[string]int{"a": 60}))},
			func(*coordinationv1.Lease) time.Duration { return age })
		if got := f.requests(epoch, endpoints); got[0] != want {
			t.Errorf("age %v: %d, want %d", age, got[0], want)
		}
		if got := f.requests(epoch.Add(time.Minute), endpoints); got[0] != 0 {
			t.Errorf("age %v, a minute later: %d", age, got[0])
		}
		// Once it is renewed its age no longer matters: it may have come from a wrong clock.
		f.saw(epoch.Add(2*time.Second), []coordinationv1.Lease{lease("weir-x", 2, record("x", map[string]int{"a": 59}))},
			func(*coordinationv1.Lease) time.Duration { return age })
		if got := f.requests(epoch.Add(2*time.Second), endpoints); got[0] != 59 {
			t.Errorf("age %v, renewed: %d, want 59", age, got[0])
		}
	}
}

// The time without a change of a Lease counts from its last write, not from this process's first sight of it: otherwise
// it would never be deleted if replicas restart often. The own Lease is not deleted.
func TestOldLeasesAreForgottenAtOnce(t *testing.T) {
	f := newForeign(time.Minute, "me")
	f.saw(epoch, []coordinationv1.Lease{lease("weir-x", 1, ""), lease("weir-own", 2, "")},
		func(*coordinationv1.Lease) time.Duration { return 16 * time.Minute })
	gone := f.forgotten(epoch, "weir-own")
	if len(gone) != 1 || gone[0].Name != "weir-x" {
		t.Errorf("%v are gone, want weir-x", gone)
	}
}

// The last change of a Lease is what counts, in whatever order the apiserver lists who has changed it.
func TestStampIsTheLatest(t *testing.T) {
	var l coordinationv1.Lease
	for _, minutes := range []time.Duration{1, 5, 3} {
		at := metav1.NewTime(epoch.Add(minutes * time.Minute))
		l.ManagedFields = append(l.ManagedFields, metav1.ManagedFieldsEntry{Time: &at}, metav1.ManagedFieldsEntry{})
	}
	if got := stampOf(&l); !got.Equal(epoch.Add(5 * time.Minute)) {
		t.Errorf("%v", got)
	}
}

// A total goes to the endpoints in proportion to their bounds, and none of it is lost.
func TestTotals(t *testing.T) {
	for _, test := range []struct {
		total  int
		bounds []int64
		want   string
	}{
		{10, []int64{1, 1}, "[5 5]"},
		{10, []int64{3, 1, 1}, "[6 2 2]"},
		{11, []int64{1, 1, 1}, "[4 4 3]"},
		{7, []int64{0, 1, 0}, "[0 7 0]"},
		{7, []int64{0, 0}, "[4 3]"},
		{7, nil, "[]"},
		{1, []int64{0, 5, 5}, "[0 1 0]"},
		{MaxInFlight, []int64{1 << 50, 1 << 50}, "[500000 500000]"},
	} {
		endpoints := make([]Endpoint, len(test.bounds))
		for i, b := range test.bounds {
			endpoints[i] = Endpoint{Key: strconv.Itoa(i), Bound: b}
		}
		f := newForeign(time.Minute, "me")
		f.saw(epoch, []coordinationv1.Lease{lease("weir-x", 1, Record{Boot: "x", InFlight: InFlight{Total: test.total}}.encode())}, fresh)
		if got := fmt.Sprint(f.requests(epoch, endpoints)); got != test.want {
			t.Errorf("%d over %v: %s, want %s", test.total, test.bounds, got, test.want)
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		endpoints := make([]Endpoint, 1+r.IntN(50))
		for i := range endpoints {
			endpoints[i] = Endpoint{Key: strconv.Itoa(i), Bound: r.Int64N(1 << uint(1+r.IntN(49)))}
		}
		total, sum := r.Int64N(MaxInFlight+1), int64(0)
		spread(total, endpoints, func(_ int, n int64) { sum += n })
		if sum != total {
			t.Fatalf("%d of %d are spread over %v", sum, total, endpoints)
		}
	}
}

// A record is never longer than MaxRecord: it lists the endpoints if they fit, else it has the totals.
func TestRecordFits(t *testing.T) {
	many := func(n int) InFlight {
		f := InFlight{ByEndpoint: map[string]int{}}
		for i := range n {
			f.ByEndpoint[fmt.Sprintf("0b7a1f6e-7d52-4a55-9d0e-%012d:8000", i)] = 100
			f.Total += 100
		}
		return f
	}
	for _, n := range []int{0, 1, 1000, 1100, 1300, 1400, 5000} {
		for _, before := range []int{0, 1, 1000, 5000} {
			r := Record{Boot: "b", InFlight: many(n), Earlier: []Earlier{{"e", 1, many(before)}, {"f", 2, many(before)}}}
			if n == 1000 {
				r.TokensByEndpoint, r.Tokens = map[string]int64{}, 7_000_000 // too many to list as well
				for key := range r.ByEndpoint {
					r.TokensByEndpoint[key] = 7000
				}
			}
			text := r.encode()
			if len(text) > MaxRecord {
				t.Errorf("%d and %d endpoints: %d bytes", n, before, len(text))
			}
			got, err := decode(text)
			if err != nil {
				t.Fatal(err)
			}
			if n == 1000 && (got.Tokens != 7_000_000 || got.TokensByEndpoint != nil) {
				t.Errorf("%d and %d endpoints: %d tokens, %d listed", n, before, got.Tokens, len(got.TokensByEndpoint))
			}
			if got.Total != 100*n || len(got.Earlier) != 2 || got.Earlier[1].Total != 100*before {
				t.Errorf("%d and %d endpoints: the totals are %d and %v", n, before, got.Total, got.Earlier)
			}
			if listed := len(got.ByEndpoint); n <= 1000 && n != listed || listed != 0 && listed != n {
				t.Errorf("%d and %d endpoints: %d are listed", n, before, listed)
			}
		}
	}
}

// A record that is exactly as long as it may be still lists its endpoints.
func TestLongestRecord(t *testing.T) {
	r := Record{Boot: "b", InFlight: InFlight{ByEndpoint: map[string]int{}}}
	for ; r.Total < 800 || len(r.encode()) < MaxRecord-100; r.Total++ {
		r.ByEndpoint[fmt.Sprintf("endpoint-%060d", r.Total)] = 1
	}
	last := "endpoint-"
	r.Total++
	r.ByEndpoint[last] = 1
	pad := MaxRecord - len(r.encode())
	delete(r.ByEndpoint, last)
	for _, test := range []struct{ pad, listed int }{{pad, r.Total}, {pad + 1, 0}} {
		key := last + strings.Repeat("x", test.pad)
		r.ByEndpoint[key] = 1
		got, err := decode(r.encode())
		if err != nil {
			t.Fatal(err)
		}
		if got.Total != r.Total || len(got.ByEndpoint) != test.listed {
			t.Errorf("with %d bytes of padding for %d: a total of %d, %d endpoints listed", test.pad, pad, got.Total, len(got.ByEndpoint))
		}
		delete(r.ByEndpoint, key)
	}
}

// The times of a replica include their last instant: one that stops drains for as long as it may, and a Lease is kept for as
// long as its process may come back.
func TestLastInstants(t *testing.T) {
	f := newForeign(time.Minute, "me")
	text := Record{Boot: "x", Draining: true}.encode()
	f.saw(epoch, []coordinationv1.Lease{lease("weir-x", 1, text)}, fresh)
	within := 5 * time.Second
	if !f.drains(epoch.Add(within), within) || f.drains(epoch.Add(within+1), within) {
		t.Errorf("after %v: %v; later: %v", within, f.drains(epoch.Add(within), within), f.drains(epoch.Add(within+1), within))
	}
	kept := forgetAfter + 5*time.Minute
	if gone := f.forgotten(epoch.Add(kept), "weir-me"); len(gone) != 0 {
		t.Errorf("after %v it is gone", kept)
	}
	if gone := f.forgotten(epoch.Add(kept+1), "weir-me"); len(gone) != 1 {
		t.Errorf("later than %v it is kept", kept)
	}
}

// A text that is not a record is refused once, with the field, and does not count as a newer record.
func TestGarbage(t *testing.T) {
	for text, want := range map[string]string{
		"":                                       "unexpected end",
		"null":                                   "boot: 0 bytes",
		"[]":                                     "array",
		"{}":                                     "boot: 0 bytes",
		`{"boot":7}`:                             "boot",
		`{"boot":"b","total":-1}`:                "total: -1: must be from 0",
		`{"boot":"b","total":1000001}`:           "total: 1000001",
		`{"boot":"b","total":1e99}`:              "total",
		`{"boot":"b","tokens":-1}`:               "tokens: -1: must be from 0",
		`{"boot":"b","tokens":1099511627777}`:    "tokens: 1099511627777",
		`{"boot":"b","endpointTokens":{"a":-5}}`: `endpointTokens: "a": -5`,
		`{"boot":"b","endpointTokens":{"a":1099511627777}}`:                                   `endpointTokens: "a": 1099511627777`,
		`{"boot":"b","earlier":[{"boot":"c","endpointTokens":{"a":1e99}}]}`:                   "endpointTokens",
		`{"boot":"b","endpoints":{"a":-5}}`:                                                   `endpoints: "a": -5`,
		`{"boot":"b","endpoints":{"a":1.5}}`:                                                  "endpoints",
		`{"boot":"b","endpoints":{"` + strings.Repeat("k", 129) + `":1}}`:                     "a key of 129 bytes",
		`{"boot":"` + strings.Repeat("b", 65) + `"}`:                                          "boot: 65 bytes",
		`{"boot":"b","earlier":[{"boot":"c","age":-1}]}`:                                      "earlier[0].age: -1",
		`{"boot":"b","earlier":[{"boot":"c"},{"boot":""}]}`:                                   "earlier[1].boot",
		`{"boot":"b","earlier":[{"boot":"c"},{"boot":"d","total":-2}]}`:                       "earlier[1].total: -2",
		`{"boot":"b","earlier":[` + strings.Repeat(`{"boot":"c"},`, 4) + `{"boot":"c"}]}`:     "earlier: 5 processes",
		`{"boot":"b","more":"` + strings.Repeat("x", MaxRecord) + `"}`:                        "must be at most 65536",
		`{"boot":"b","more":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + "}": "depth",
	} {
		f := newForeign(time.Minute, "me")
		good := lease("weir-x", 1, record("x", map[string]int{"a": 60}))
		f.saw(epoch, []coordinationv1.Lease{good}, fresh)
		later := epoch.Add(30 * time.Second)
		bad := f.saw(later, []coordinationv1.Lease{lease("weir-x", 2, text)}, fresh)
		if len(bad) != 1 || bad[0].lease != "weir-x" || !strings.Contains(bad[0].err.Error(), want) {
			t.Errorf("%.60s: %v, want %q", text, bad, want)
		}
		if again := f.saw(later, []coordinationv1.Lease{lease("weir-x", 3, text)}, fresh); len(again) != 0 {
			t.Errorf("%.60s: refused twice: %v", text, again)
		}
		if got := f.requests(later, []Endpoint{{Key: "a", Bound: 1}}); got[0] != 30 {
			t.Errorf("%.60s: the last good record counts %d, want 30", text, got[0])
		}
	}
	// A newer version of Weir may have further fields.
	if _, err := decode(`{"boot":"b","total":3,"endpoints":{"a":3},"cost":{"a":17}}`); err != nil {
		t.Error(err)
	}
}

// Only a few earlier processes of a replica are remembered, however many it claims.
func TestProcessesAreBounded(t *testing.T) {
	f := newForeign(time.Minute, "me")
	for i := range 1000 {
		f.saw(epoch.Add(time.Duration(i)*time.Millisecond), []coordinationv1.Lease{lease("weir-x", i, record(fmt.Sprint("b", i), map[string]int{"a": 1}))}, fresh)
	}
	if n := len(f.replicas["weir-x"].processes); n != maxProcesses {
		t.Errorf("%d processes are remembered", n)
	}
	if got := f.requests(epoch.Add(time.Second), []Endpoint{{Key: "a", Bound: 1}}); got[0] != maxProcesses {
		t.Errorf("they count %d", got[0])
	}
}

// Leases made and deleted all the time do not fill the memory, and existing ones stay known.
func TestReplicasAreBounded(t *testing.T) {
	f := newForeign(time.Hour, "me")
	stays := lease("weir-stays", 1, record("stays", map[string]int{"a": 7}))
	for i := range 50 {
		leases := []coordinationv1.Lease{stays}
		for j := range maxReplicas - 1 {
			name := fmt.Sprint("weir-", i, "-", j)
			leases = append(leases, lease(name, 1, record(name, map[string]int{"b": 1})))
		}
		f.saw(epoch.Add(time.Duration(i)*time.Second), leases, fresh)
	}
	if n := len(f.replicas); n != maxRemembered {
		t.Errorf("%d replicas are remembered, want %d", n, maxRemembered)
	}
	got := f.requests(epoch.Add(50*time.Second), []Endpoint{{Key: "a", Bound: 1}, {Key: "b", Bound: 1}})
	if got[0] != 7 || got[1] != maxRemembered-1 {
		t.Errorf("%v", got)
	}
	for name := range f.replicas {
		if strings.HasPrefix(name, "weir-0-") {
			t.Errorf("%s is remembered, and newer ones are not", name)
		}
	}
}

// Errors about records are short.
func TestRefusalsAreShort(t *testing.T) {
	for _, text := range []string{
		`{"boot":"x","total":` + strings.Repeat("9", 60000) + `}`,
		`{"boot":"x","endpoints":{"` + strings.Repeat("k", 60000) + `":1}}`,
		`{"boot":"` + strings.Repeat("b", 60000) + `"}`,
	} {
		if _, err := decode(text); err == nil || len(err.Error()) > 300 {
			t.Errorf("%.400v", err)
		}
	}
}

// Whatever others write: no panic, no negative count, nothing left after the window, and at most the claimed counts.
func FuzzForeign(f *testing.F) {
	f.Add(record("x", map[string]int{"a": 3}), int64(time.Second))
	f.Add(`{"boot":"b","total":7}`, int64(time.Minute))
	f.Add(`{"boot":"me","earlier":[{"boot":"c","age":3,"total":7}]}`, int64(-1))
	f.Fuzz(func(t *testing.T, text string, after int64) {
		state := newForeign(time.Minute, "me")
		state.saw(epoch, []coordinationv1.Lease{lease("weir-x", 1, text)}, func(*coordinationv1.Lease) time.Duration { return time.Duration(after) })
		now := epoch.Add(time.Duration(max(0, after)))
		endpoints := []Endpoint{{Key: "a", Bound: 3}, {Key: "b", Bound: 0}}
		sum := 0
		for _, n := range state.requests(now, endpoints) {
			if n < 0 {
				t.Fatalf("%q: %d", text, n)
			}
			sum += n
		}
		if sum > (1+maxEarlier)*2*MaxInFlight {
			t.Fatalf("%q: %d", text, sum)
		}
		for _, h := range state.stock(now, []Endpoint{{"a", 3, Held{4, 1000}}, {"b", 0, Held{1, 0}}}) {
			if h.Requests < 0 || h.Requests > 4 || h.Tokens < 0 || h.Requests == 0 && h.Tokens > 0 {
				t.Fatalf("%q: %+v", text, h)
			}
		}
		for _, n := range state.requests(epoch.Add(time.Minute), endpoints) {
			if n != 0 {
				t.Fatalf("%q: %d after the window", text, n)
			}
		}
		if r, err := decode(text); err == nil {
			if again, err := decode(r.encode()); err != nil || again.Boot != r.Boot {
				t.Fatalf("%q: written again it is refused: %v", text, err)
			}
		}
		_ = state.earlier(now, "weir-x")
		_, _ = json.Marshal(state.earlier(now, "weir-x"))
	})
}

// The sum also falls evenly if each endpoint has few requests: a pool of full engines has room again before half of the
// window.
func TestTheSumFallsEvenly(t *testing.T) {
	f := newForeign(time.Minute, "me")
	at, endpoints := map[string]int{}, []Endpoint{}
	for i := range 30 {
		key := fmt.Sprint("e", i)
		at[key] = 2
		endpoints = append(endpoints, Endpoint{Key: key, Bound: 1})
	}
	f.saw(epoch, []coordinationv1.Lease{lease("weir-x", 1, record("x", at))}, fresh)
	for second := range 61 {
		sum := 0
		for i, n := range f.requests(epoch.Add(time.Duration(second)*time.Second), endpoints) {
			if n < 0 || n > 2 {
				t.Errorf("after %d s: %d at endpoint %d", second, n, i)
			}
			sum += n
		}
		if sum != 60-second {
			t.Errorf("after %d s: %d of 60, want %d", second, sum, 60-second)
		}
	}
}
