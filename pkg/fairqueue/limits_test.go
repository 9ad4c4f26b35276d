package fairqueue

import (
	"errors"
	"testing"
)

// limited returns a queue with two classes, of which the first has limits.
func limited(t *testing.T, l ClassLimits) *FairRequestQueue {
	t.Helper()
	return classes(t, Stay, ClassConfig{Name: "a", Quantum: 1, Limits: l}, ClassConfig{Name: "b", Quantum: 1})
}

// prompted returns a request of a class with a prompt, which is charged its uncached tokens.
func prompted(class string, raw, cached int64) *Request {
	p := PromptOf(raw, cached)
	return &Request{Path: &Path{Class: class, Prompt: p}, Cost: Cost(p.Uncached())}
}

// wantLimited checks that a request would be rejected by a limit; with kind NumLimits, that it would not.
func wantLimited(t *testing.T, q *FairRequestQueue, r *Request, backends int, kind LimitKind, current, limit int64) {
	t.Helper()
	err := q.Limited(r, backends)
	got := new(LimitError)
	switch {
	case kind == NumLimits:
		if err != nil {
			t.Errorf("want no limit, got %v", err)
		}
	case !errors.As(err, &got) || !errors.Is(err, ErrTooManyFlows):
		t.Errorf("want %v reached, got %v", kind, err)
	case *got != LimitError{Class: "a", Limit: kind, Current: current, Most: limit}:
		t.Errorf("got %+v, want %v %d/%d", *got, kind, current, limit)
	}
}

// Golden of parity/dynamo.md, section 4: limits of 1 request, 5 raw and 3 cached tokens at 2 backends.
func TestLimitsOfThreeKinds(t *testing.T) {
	q := limited(t, ClassLimits{Requests: new(int64(1)), RawTokens: new(int64(5)), CachedTokens: new(int64(3))})
	for _, r := range []*Request{prompted("a", 8, 4), prompted("a", 100, 100)} {
		wantLimited(t, q, r, 2, NumLimits, 0, 0)
		mustPush(t, q, r)
	}
	wantLimited(t, q, prompted("a", 1, 0), 2, LimitRequests, 2, 2)
	wantLimited(t, q, prompted("b", 1, 0), 2, NumLimits, 0, 0)
	wantLimited(t, q, prompted("no such class", 1, 0), 2, LimitRequests, 2, 2) // it belongs to the first
}

// Golden of section 4: raw cap of 10. The request that crosses the limit is accepted, and losing a backend evicts nobody.
func TestLimitOfRawTokens(t *testing.T) {
	q := limited(t, ClassLimits{RawTokens: new(int64(10))})
	mustPush(t, q, prompted("a", 11, 0))
	wantLimited(t, q, prompted("a", 10, 0), 1, LimitRawTokens, 11, 10)
	wantLimited(t, q, prompted("a", 10, 0), 2, NumLimits, 0, 0)
	mustPush(t, q, prompted("a", 10, 0))
	wantLimited(t, q, prompted("a", 1, 0), 2, LimitRawTokens, 21, 20)
	wantLimited(t, q, prompted("a", 1, 0), 0, LimitRawTokens, 21, 0)
	if q.Len() != 2 {
		t.Errorf("%d wait, want 2", q.Len())
	}
}

// The limits are checked in the order requests, raw tokens, cached tokens.
func TestOrderOfLimits(t *testing.T) {
	for _, test := range []struct {
		limits ClassLimits
		want   LimitKind
	}{
		{ClassLimits{new(int64(1)), new(int64(5)), new(int64(3))}, LimitRequests},
		{ClassLimits{new(int64(2)), new(int64(5)), new(int64(3))}, LimitRawTokens},
		{ClassLimits{new(int64(2)), new(int64(9)), new(int64(3))}, LimitCachedTokens},
		{ClassLimits{new(int64(2)), new(int64(9)), new(int64(5))}, NumLimits},
		{ClassLimits{nil, nil, new(int64(3))}, LimitCachedTokens},
	} {
		q := limited(t, test.limits)
		mustPush(t, q, prompted("a", 8, 4))
		wantLimited(t, q, prompted("a", 1, 0), 1, test.want, [...]int64{1, 8, 4, 0}[test.want], map[LimitKind]int64{
			LimitRequests: 1, LimitRawTokens: 5, LimitCachedTokens: 3,
		}[test.want])
	}
}

// With a limit of 0 no request waits, for any number of backends; no limit is different from a limit of 0.
func TestLimitOfZero(t *testing.T) {
	wantLimited(t, limited(t, ClassLimits{Requests: new(int64(0))}), prompted("a", 1, 0), 9, LimitRequests, 0, 0)
	wantLimited(t, limited(t, ClassLimits{CachedTokens: new(int64(0))}), prompted("a", 1, 0), 9, LimitCachedTokens, 0, 0)
	wantLimited(t, limited(t, ClassLimits{}), prompted("a", 1, 0), 0, NumLimits, 0, 0)
}

// Section 8, point 5: a cancelled request frees its limit at once and is never charged.
func TestACancelledRequestFreesItsLimit(t *testing.T) {
	q := limited(t, ClassLimits{Requests: new(int64(1)), RawTokens: new(int64(5)), CachedTokens: new(int64(3))})
	first, gone := prompted("a", 3, 1), prompted("a", 8, 4)
	mustPush(t, q, gone)
	wantLimited(t, q, first, 1, LimitRequests, 1, 1)
	deficit := q.Classes()[0].Deficit
	q.Remove(gone)
	wantLimited(t, q, first, 1, NumLimits, 0, 0)
	if v := q.Classes()[0]; v.Queued != 0 || v.RawTokens != 0 || v.CachedTokens != 0 || v.Deficit != deficit {
		t.Errorf("after the cancellation: %+v", v)
	}
	mustPush(t, q, first)
	if popNext(q) != first {
		t.Error("the other does not go")
	}
	wantLimited(t, q, prompted("a", 1, 0), 1, NumLimits, 0, 0)
}

// The cached part of a prompt is clamped to the prompt.
func TestPrompt(t *testing.T) {
	for _, test := range []struct {
		raw, cached int64
		want        int64
	}{{1024, 960, 64}, {1024, 16, 1008}, {1024, 0, 1024}, {512, 512, 0}, {512, 4096, 0}, {0, 0, 0}, {-5, -7, 0}, {1 << 40, 0, int64(MaxCost)}, {10, -3, 10}} {
		if got := PromptOf(test.raw, test.cached).Uncached(); got != test.want {
			t.Errorf("%d tokens, %d of them cached: %d are not, want %d", test.raw, test.cached, got, test.want)
		}
	}
	if got := (Prompt{Raw: 5, Cached: 9}).Uncached(); got != 0 {
		t.Errorf("more cached than there is: %d are not", got)
	}
}
