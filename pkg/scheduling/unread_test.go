package scheduling

import "testing"

// wantUnread checks the unread tokens of the endpoints, in order.
func wantUnread(t *testing.T, b *Board, want ...int64) {
	t.Helper()
	var sum int64
	for i, share := range b.Shares(nil) {
		if share.Unread != want[i] {
			t.Fatalf("endpoint %d has %d tokens to read, want %v", i, share.Unread, want)
		}
		sum += share.Unread
	}
	if b.unread != sum {
		t.Fatalf("%d tokens in all, want %d", b.unread, sum)
	}
}

// watched is a query for a prompt that endpoints have partly cached, and whose first token Weir will see.
func watched(t *testing.T, b *Board, prompt int64, above ...Cached) *Query {
	t.Helper()
	q := prepare(t, b, Ask{})
	q.Rate(&Ratings{Prompt: prompt, Above: above, Watched: true})
	return q
}

// A long unread prompt keeps other requests away until its first token: each token before a request costs as much as
// two of its own, however many requests are elsewhere.
func TestPromptsThatAreBeingRead(t *testing.T) {
	b := poolOf(t, mustNew(t), ready(0, "10.0.0.1:80"), ready(1, "10.0.0.2:80"))
	for id := range EndpointID(2) {
		b.SetBounds(id, 64*Millionths, 64*Millionths)
	}
	long := b.Place(watched(t, b, 10_000), BelowUpper, nil)
	wantUnread(t, b, 10_000, 0)
	wantPlaced(t, b, prepare(t, b, Ask{}), BelowUpper, 1) // of an unknown prompt
	// 2 · 10,000 + 100 · 2 at the one, 2 · 100 · n + 100 · (2 + n) at the other: the latter is less up to n = 66.
	for range 50 {
		wantPlaced(t, b, watched(t, b, 100), BelowUpper, 1)
	}
	wantUnread(t, b, 10_000, 5000)
	b.PromptRead(&long)
	b.PromptRead(&long)
	wantUnread(t, b, 0, 5000)
	wantPlaced(t, b, watched(t, b, 100), BelowUpper, 0)
	b.Release(&long)
	wantUnread(t, b, 100, 5000)
}

// Only uncached tokens count, and only of requests whose first tokens are seen. Without any, every choice is the
// endpoint with the fewest requests.
func TestUncachedTokensAreRead(t *testing.T) {
	b := poolOf(t, mustNew(t), ready(0, "10.0.0.1:80"), ready(1, "10.0.0.2:80"))
	r := b.PlaceAt(watched(t, b, 10_000, Cached{1, 9_000}), 1)
	wantUnread(t, b, 0, 1000)
	unseen := prepare(t, b, Ask{})
	unseen.Rate(&Ratings{Prompt: 10_000})
	b.PlaceAt(unseen, 0)
	b.PlaceAt(prepare(t, b, Ask{}), 0)
	wantUnread(t, b, 0, 1000)
	b.Release(&r)
	wantUnread(t, b, 0, 0)
	if b.PlaceAt(watched(t, b, MaxPrompt+5), 0); b.spots[0].prompts != MaxPrompt {
		t.Errorf("the longest prompt counts %d", b.spots[0].prompts)
	}
}

// The tokens stay while an endpoint is away, and end with their requests, wherever these are.
func TestUnreadTokensOfEndpointsThatLeave(t *testing.T) {
	both := []Endpoint{ready(0, "10.0.0.1:80"), ready(1, "10.0.0.2:80")}
	b := poolOf(t, mustNew(t), both...)
	first, second := b.PlaceAt(watched(t, b, 700), 0), b.PlaceAt(watched(t, b, 300), 0)
	b.SetSnapshot(NewSnapshot(2, both[1:]))
	b.PromptRead(&second)
	b.SetSnapshot(NewSnapshot(3, both))
	wantUnread(t, b, 700, 0)
	b.SetSnapshot(NewSnapshot(4, both[1:]))
	b.Release(&first)
	b.Release(&second)
	b.SetSnapshot(NewSnapshot(5, both))
	wantUnread(t, b, 0, 0)
}

// A prompt that a prefill engine reads does not count at the serving engine, whose first token does not end it.
func TestPrefillEnginesReadForOthers(t *testing.T) {
	s := mustNew(t, func(c *Config) { c.PrefillThreshold, c.PrefillTokens = 1000, 1<<20 })
	decode, prefill := ready(0, "10.0.0.1:80"), ready(1, "10.0.0.2:80")
	decode.Work, prefill.Work = WorkDecode, WorkPrefill
	b := poolOf(t, s, decode, prefill)
	apart := b.Place(watched(t, b, 5000), BelowUpper, nil)
	short := b.Place(watched(t, b, 500), BelowUpper, nil)
	if got := [...]int64{b.spots[0].prompts, b.spots[1].prompts, b.unread}; got != [...]int64{500, 5000, 500} {
		t.Fatalf("to read: %v", got)
	}
	b.PromptRead(&apart)
	b.PromptRead(&short)
	taken := apart.Take(Prefilling)
	if got := [...]int64{b.spots[0].prompts, b.spots[1].prompts, b.unread}; got != [...]int64{0, 5000, 0} {
		t.Fatalf("to read: %v", got)
	}
	b.Release(&taken)
	b.Release(&apart)
	if got := [...]int64{b.spots[0].prompts, b.spots[1].prompts, b.unread}; got != [...]int64{0, 0, 0} {
		t.Fatalf("to read: %v", got)
	}
}

// BenchmarkPlaceWatched measures a pick with unread prompts everywhere, so that no endpoint can be left out by its
// standing, and a pick with few: at most 5 µs for 2,000 endpoints.
func BenchmarkPlaceWatched(b *testing.B) {
	for name, n := range map[string]int{"64": 64, "512": 512, "2000": 2000} {
		for of, busy := range map[string]int{"everywhere": 1, "at-a-tenth": 10} {
			b.Run(name+"/"+of, func(b *testing.B) {
				board, q := benchmarkBoard(b, n, Ask{}, false)
				for id := range n {
					board.SetBounds(EndpointID(id), 64*Millionths, 64*Millionths)
					for range id * 31 % 8 {
						board.PlaceAt(q, EndpointID(id))
					}
					if id%busy == 0 {
						long, _ := q.scheduler.Prepare(board.Snapshot(), Ask{})
						long.Rate(&Ratings{Prompt: int64(2000 + id*7919%5000), Watched: true})
						board.PlaceAt(long, EndpointID(id))
					}
				}
				q.Rate(&Ratings{Prompt: 3000, Watched: true})
				b.ReportAllocs()
				for b.Loop() {
					held := board.Place(q, BelowUpper, nil)
					board.Release(&held)
				}
			})
		}
	}
}
