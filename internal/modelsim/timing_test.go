package modelsim

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

const chatPath = "/v1/chat/completions"

// Ten requests at once, to four slots of 200 ms, end in three rounds.
func TestFixedTimeQueues(t *testing.T) {
	inBubble(t, Fixed(4, 200*time.Millisecond), func(t *testing.T, b *bubble) {
		start := time.Now()
		var mu sync.Mutex
		var took []time.Duration
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				b.post(chatPath, `{"messages":[]}`)
				mu.Lock()
				defer mu.Unlock()
				took = append(took, time.Since(start))
			})
		}
		synctest.Wait()
		if s := b.Stats(); s.Running != 4 || s.Waiting != 6 || s.InFlight != 10 {
			t.Errorf("after the arrivals: %+v, want 4 running and 6 waiting", s)
		}
		wg.Wait()
		slices.Sort(took)
		const round = 200 * time.Millisecond
		want := slices.Concat(slices.Repeat([]time.Duration{round}, 4), slices.Repeat([]time.Duration{2 * round}, 4),
			slices.Repeat([]time.Duration{3 * round}, 2))
		if !slices.Equal(took, want) {
			t.Errorf("requests took %v, want %v", took, want)
		}
		if s := b.Stats(); s.Completed != 10 || s.InFlight != 0 || s.MaxRunning != 4 || s.MaxLoad != 10 {
			t.Errorf("at the end: %+v, want 10 completed, at most 4 running and 10 in the engine", s)
		}
	})
}

// The headers of a stream do not wait for the slot. The data does.
func TestStreamHeadersComeAtOnce(t *testing.T) {
	inBubble(t, Fixed(1, 400*time.Millisecond), func(t *testing.T, b *bubble) {
		first, err := b.send(t.Context(), chatPath, `{"messages":[],"stream":true,"max_tokens":4}`)
		if err != nil {
			t.Fatal(err)
		}
		defer first.Body.Close()
		start := time.Now()
		second, err := b.send(t.Context(), chatPath, `{"messages":[],"stream":true,"max_tokens":2}`)
		if err != nil {
			t.Fatal(err)
		}
		defer second.Body.Close()
		if waited := time.Since(start); waited != 0 {
			t.Errorf("the headers of the waiting request came after %v, want at once", waited)
		}
		// Events: the role, four tokens, the finish, [DONE].
		got := times(readEvents(t, first.Body, start))
		ms := time.Millisecond
		if want := []time.Duration{100 * ms, 100 * ms, 200 * ms, 300 * ms, 400 * ms, 400 * ms, 400 * ms}; !slices.Equal(got, want) {
			t.Errorf("events of the first came at %v, want %v", got, want)
		}
		got = times(readEvents(t, second.Body, start))
		if want := []time.Duration{600 * ms, 600 * ms, 800 * ms, 800 * ms, 800 * ms}; !slices.Equal(got, want) {
			t.Errorf("events of the second came at %v, want %v", got, want)
		}
	})
}

// On /v1/responses two events come with the headers, before the first token.
func TestResponsesStreamOpensAtOnce(t *testing.T) {
	inBubble(t, Fixed(1, 400*time.Millisecond), func(t *testing.T, b *bubble) {
		start := time.Now()
		resp, err := b.send(t.Context(), "/v1/responses", `{"input":"hi","stream":true,"max_output_tokens":4}`)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		got := times(readEvents(t, resp.Body, start))
		ms := time.Millisecond
		if want := []time.Duration{0, 0, 100 * ms, 100 * ms, 100 * ms, 200 * ms}; !slices.Equal(got[:6], want) {
			t.Errorf("events came at %v, want %v first", got, want)
		}
	})
}

// After the abort delay the slot is free. A waiting request of a disconnected client is dropped in the same way.
func TestClientLeaves(t *testing.T) {
	for _, delay := range []time.Duration{0, 50 * time.Millisecond} {
		t.Run(delay.String(), func(t *testing.T) {
			cfg := Fixed(1, time.Second)
			cfg.Engine.AbortDelay = delay
			inBubble(t, cfg, func(t *testing.T, b *bubble) {
				ctx, leave := context.WithCancel(t.Context())
				var wg sync.WaitGroup
				for range 2 {
					wg.Go(func() {
						if _, err := b.send(ctx, chatPath, `{"messages":[]}`); err == nil {
							t.Error("an answer came to a client that had left")
						}
					})
				}
				time.Sleep(100 * time.Millisecond)
				start := time.Now()
				leave()
				wg.Wait()
				if err := b.WaitFor(t.Context(), func(s Stats) bool { return s.Running+s.Waiting == 0 }); err != nil {
					t.Error(err)
				}
				if took := time.Since(start); took != delay {
					t.Errorf("the slot was free after %v, want %v", took, delay)
				}
				if status, _ := b.post(chatPath, `{"messages":[]}`); status != http.StatusOK {
					t.Errorf("status %d, want 200", status)
				}
				if took, want := time.Since(start), delay+time.Second; took != want {
					t.Errorf("the next request took %v, want %v", took, want)
				}
				if s := b.Stats(); s.Aborted != 2 || s.Completed != 1 || s.Running+s.Waiting+s.InFlight != 0 {
					t.Errorf("%+v, want 2 aborted, 1 completed and nothing left", s)
				}
			})
		})
	}
}

// TestClientLeavesAStream checks that the slot is free at once even with data under way.
func TestClientLeavesAStream(t *testing.T) {
	inBubble(t, Fixed(1, time.Second), func(t *testing.T, b *bubble) {
		ctx, leave := context.WithCancel(t.Context())
		resp, err := b.send(ctx, chatPath, `{"messages":[],"stream":true,"max_tokens":10}`)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		start := time.Now()
		if _, err := resp.Body.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(start); waited != 100*time.Millisecond {
			t.Errorf("the first data came after %v, want 100ms", waited)
		}
		leave()
		if err := b.WaitFor(t.Context(), func(s Stats) bool { return s.Aborted == 1 }); err != nil {
			t.Error(err)
		}
		if s := b.Stats(); s.Running != 0 || s.GeneratedTokens != 1 || time.Since(start) != 100*time.Millisecond {
			t.Errorf("%v after the first data %+v, want nothing running after one token", time.Since(start), s)
		}
	})
}

// TestWaitFor checks that WaitFor wakes on a change and ends with the context.
func TestWaitFor(t *testing.T) {
	inBubble(t, Fixed(1, time.Second), func(t *testing.T, b *bubble) {
		start := time.Now()
		go b.post(chatPath, `{"messages":[]}`)
		if err := b.WaitFor(t.Context(), func(s Stats) bool { return s.Completed == 1 }); err != nil {
			t.Error(err)
		}
		if took := time.Since(start); took != time.Second {
			t.Errorf("woken after %v, want 1s", took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := b.WaitFor(ctx, func(s Stats) bool { return s.Completed == 2 }); err == nil {
			t.Error("no error although it never came true")
		}
	})
}

func times(moments []moment) []time.Duration {
	var list []time.Duration
	for _, m := range moments {
		list = append(list, m.after)
	}
	return list
}
