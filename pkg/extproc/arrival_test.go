package extproc

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-epp/weir/pkg/request"
)

const (
	timedOut = "immediate 408 body-timeout"
	noMemory = "immediate 503 no-memory"
)

func byTenant(c *Config) { c.FlowKey = []string{"header:x-tenant", "model"} }

// A client that stops sending is rejected after exactly limits.bodyTimeout, whatever it has sent. Afterwards it holds
// no memory, even if its stream stays open.
func TestBodyThatNeverEnds(t *testing.T) {
	for _, mode := range []string{"FULL_DUPLEX/NONE", "BUFFERED/NONE", "BUFFERED_PARTIAL/NONE"} {
		for _, sent := range []string{"", `{"model":"m"`} {
			inBubble(t, mode, nil, func(c *conversation) {
				c.say(chat())
				if sent != "" && mode == "FULL_DUPLEX/NONE" {
					c.say(requestBodyOf(sent, false))
				}
				c.heard()
				time.Sleep(30*time.Second - 1)
				if got := c.heard(); got != "" {
					t.Errorf("%s: before the time: %s", mode, got)
				}
				time.Sleep(time.Nanosecond)
				if got := c.heard(); got != timedOut {
					t.Errorf("%s: got %q", mode, got)
				}
				if held := c.server.memory.bytes(); held != 0 || c.controller.outcomes != 1 {
					t.Errorf("%s: %d bytes, %d outcomes with the stream still open", mode, held, c.controller.outcomes)
				}
				c.say(requestBodyOf(`,"x":1}`, true)) // too late
				c.settled(1)
				if got := c.heard(); got != "" || len(c.controller.requests) != 0 {
					t.Errorf("%s: after the last message: %q", mode, got)
				}
			})
		}
	}
}

// Empty chunks do not extend a body's deadline. Bytes extend it by a second for every 64 KiB. So a slow upload
// succeeds, and a much slower one does not.
func TestBodyTimeoutFollowsWhatCame(t *testing.T) {
	chunk := strings.Repeat(" ", 64<<10)
	for _, test := range []struct {
		name  string
		part  string
		every time.Duration
		until time.Duration // time of the rejection; 0: it goes through after 100 parts
	}{
		{"empty chunks", "", 100 * time.Millisecond, 30 * time.Second},
		{"64 KiB a second", chunk, time.Second, 0},
		{"64 KiB in 1.25 s", chunk, 1250 * time.Millisecond, 0},
		{"64 KiB in 2 s", chunk, 2 * time.Second, 59 * time.Second}, // 30 s, and the time of the 29 parts so far
	} {
		inBubble(t, "FULL_DUPLEX/NONE", nil, func(c *conversation) {
			c.say(chat())
			c.say(requestBodyOf(`{"model":"m"`, false))
			begun := time.Now()
			for range 1000 {
				time.Sleep(test.every)
				if time.Since(begun) >= 100*test.every && test.until == 0 {
					break
				}
				synctest.Wait()
				if c.controller.outcomes > 0 {
					break
				}
				c.say(requestBodyOf(test.part, false))
			}
			if test.until == 0 {
				c.say(requestBodyOf(`}`, true))
				if got := c.heard(); !strings.HasPrefix(got, "headers "+dest) {
					t.Errorf("%s: got %.100s", test.name, got)
				}
				c.settled(1)
				return
			}
			if got, after := c.heard(), time.Since(begun); got != timedOut || after.Truncate(2*time.Second) != test.until.Truncate(2*time.Second) {
				t.Errorf("%s: got %.100s after %v", test.name, got, after)
			}
			c.settled(1)
		})
	}
}

// BUFFERED shows no byte before the last one, so the announced length counts, up to the limit. A false length gains no
// more time than that.
func TestAnnouncedLengthCountsAsReceived(t *testing.T) {
	for announced, want := range map[string]time.Duration{
		"":                    30 * time.Second,
		"0":                   30 * time.Second,
		"65536":               31 * time.Second,
		"6553600":             130 * time.Second,
		"33554432":            542 * time.Second, // 32 MiB
		"-6553600":            30 * time.Second,
		"9223372036854775808": 30 * time.Second, // not a number
		"1e9":                 30 * time.Second,
	} {
		wantTimeout(t, "BUFFERED/NONE", announced, want)
	}
}

// wantTimeout checks the time at which Weir rejects a missing body of an announced length.
func wantTimeout(t *testing.T, mode, announced string, want time.Duration) {
	t.Helper()
	inBubble(t, mode, nil, func(c *conversation) {
		c.say(chat("content-length", announced))
		c.heard()
		time.Sleep(want - 1)
		early := c.heard()
		time.Sleep(time.Nanosecond)
		if got := c.heard(); early != "" || got != timedOut {
			t.Errorf("%s: %q: %q before %v, then %q", mode, announced, early, want, got)
		}
		c.settled(1)
	})
}

// If Weir sees the bytes as they arrive, an announced length gains no time. In BUFFERED_PARTIAL it may exceed the
// limit, and gains no more time than the limit does.
func TestAnnouncedLengthElsewhere(t *testing.T) {
	wantTimeout(t, "FULL_DUPLEX/NONE", "33554432", 30*time.Second)
	wantTimeout(t, "BUFFERED_PARTIAL/NONE", "999999999999", 542*time.Second) // of 32 MiB
}

// If the body ends or the client leaves at the instant of the timeout, there is one outcome, and nothing after the last
// message.
func TestBodyTimeoutAtTheSameInstant(t *testing.T) {
	for name, last := range map[string]func(c *conversation){
		"whole":    func(c *conversation) { c.say(requestBodyOf(`{"model":"m"}`, true)) },
		"trailers": func(c *conversation) { c.say(requestTrailers()) },
		"gone":     func(c *conversation) { c.cancel() },
		"answered": func(c *conversation) { c.say(responseHeaders("413", true)) },
	} {
		for range 20 {
			inBubble(t, "FULL_DUPLEX/NONE", nil, func(c *conversation) {
				c.say(chat())
				synctest.Wait()
				time.Sleep(30 * time.Second)
				last(c)
				synctest.Wait()
				c.settled(1)
				for i, m := range c.stream.sent {
					if isImmediate(m) && i != len(c.stream.sent)-1 {
						t.Errorf("%s: %s after the last message", name, render(c.stream.sent[i+1]))
					}
				}
			})
		}
	}
}

// All bodies share one timer. After the last body is whole it fires at most once more, and is not armed again.
func TestNoTimerWithoutArrivals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		standing := func() bool {
			b.server.memory.mu.Lock()
			defer b.server.memory.mu.Unlock()
			return b.server.memory.due.armed
		}
		c := b.open("BUFFERED/NONE")
		c.say(chat())
		synctest.Wait()
		if !standing() {
			t.Error("the body is not watched")
		}
		b.controller.hold = true
		c.say(requestBodyOf(`{"model":"m"}`, true))
		time.Sleep(30 * time.Second)
		synctest.Wait()
		if standing() {
			t.Error("a timer stands and every body is whole")
		}
		b.controller.grant <- nil
		if got := c.heard(); !strings.Contains(got, "body "+dest) {
			t.Errorf("got %s", got)
		}
		c.settled(1)
	})
}

// opened opens n requests of a tenant in FULL_DUPLEX, each with the first bytes of its body.
func (b *testbench) opened(tenant string, n, bytes int) []*conversation {
	var all []*conversation
	for range n {
		c := b.open("FULL_DUPLEX/NONE")
		c.say(chat("x-tenant", tenant))
		c.say(requestBodyOf(strings.Repeat(" ", bytes), false))
		synctest.Wait()
		all = append(all, c)
	}
	return all
}

func kib(n int64) func(*Config) {
	return func(c *Config) {
		byTenant(c)
		c.Limits.MaxBodyBytes, c.Limits.MaxBodyBytesTotal = n<<10, n<<10
	}
}

// The tenant with the most bytes in incomplete bodies loses the newest of them, and no other tenant loses any.
func TestHoarderLosesItsNewestBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, kib(64))
		quiet := b.opened("quiet", 1, 8<<10)
		hoarder := b.opened("hoarder", 6, 8<<10)
		arrival := b.opened("arrival", 2, 8<<10) // the second is one too many
		for i, c := range hoarder {
			if got, want := c.heard(), map[bool]string{true: noMemory}[i == 5]; got != want {
				t.Errorf("body %d of the hoarder: %q, want %q", i, got, want)
			}
		}
		for _, c := range append(quiet, arrival...) {
			c.say(requestBodyOf(`{"model":"m"}`, true))
			if got := c.heard(); !strings.HasPrefix(got, "headers "+dest) {
				t.Errorf("got %.80q", got)
			}
			c.end()
		}
		for _, c := range hoarder {
			c.end()
		}
		quiet[0].settled(9)
	})
}

// If the tenant with the most bytes sends more, its own arrival is rejected. A complete body is never expelled: if all
// held bodies are complete, the arrival is rejected, and no incomplete body is expelled in vain.
func TestWhoIsRefusedForMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, kib(64))
		hoarder := b.opened("hoarder", 8, 8<<10)
		more := b.opened("hoarder", 1, 8<<10)
		if got := more[0].heard(); got != noMemory {
			t.Errorf("the hoarder's next: %q", got)
		}
		for _, c := range hoarder {
			if got := c.heard(); got != "" {
				t.Errorf("the hoarder's older ones: %q", got)
			}
			c.end()
		}
		more[0].settled(9)
	})
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, kib(64))
		b.controller.hold = true
		whole := b.opened("hoarder", 7, 8<<10)
		for _, c := range whole {
			c.say(requestBodyOf(`{"model":"m"}`, true)) // waits in the queue, and holds its body
		}
		small := b.opened("small", 1, 1<<10)
		late := b.opened("late", 1, 8<<10) // also without the small one it would not fit
		if got := late[0].heard(); got != noMemory {
			t.Errorf("got %q", got)
		}
		if got := small[0].heard(); got != "" {
			t.Errorf("one has lost its body for nothing: %q", got)
		}
		for range whole {
			b.controller.grant <- nil
		}
		for _, c := range whole {
			if got := c.heard(); !strings.HasPrefix(got, "timeout=35s; headers "+dest) {
				t.Errorf("a complete body was taken away: %.80q", got)
			}
			c.end()
		}
		small[0].end()
		late[0].settled(9)
	})
}

// The charge is the allocated memory: at most twice the bytes that arrived, and never more than announced, for any
// chunks and any announced length.
func TestBodiesAreChargedAsAllocated(t *testing.T) {
	limits := DefaultConfig().Limits
	for _, test := range []struct {
		announced int64
		chunks    []int
		most      int64 // capacity at the end
		spare     int   // spare capacity, as decoders leave it
	}{
		{1_000_000, append([]int{1}, ones21()...), 64, 0},
		{-1, []int{1000, 1000, 1000}, 6000, 0},
		{2500, []int{1000, 1000, 500}, 2500, 0},
		{10, []int{1000, 1000}, 4096, 0}, // a false length
		{1 << 40, []int{20 << 20, 1}, 32 << 20, 0},
		{24 << 20, []int{20 << 20, 1}, 24 << 20, 0},
		{-1, []int{1000}, 2000, 1000},
	} {
		var memory bodyMemory
		b := requestBody{memory: &memory, limits: &limits}
		b.await(nobody{}, &request.Request{Tenant: "x", ContentLength: test.announced}, request.FullDuplex, time.Now())
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		var length, came int
		for _, n := range test.chunks {
			part := make([]byte, n, n+test.spare)
			came += cap(part)
			if err := b.add(part, false); err != nil {
				t.Fatal(err)
			}
			length += n
			if memory.bytes() < int64(cap(b.bytes)) || len(b.bytes) != length {
				t.Errorf("%+v: %d charged, %d allocated, %d long", test.announced, memory.bytes(), cap(b.bytes), len(b.bytes))
			}
		}
		runtime.ReadMemStats(&after)
		if allocated := int64(after.TotalAlloc-before.TotalAlloc) - int64(came); allocated > 2*test.most+32<<10 {
			t.Errorf("%d announced, %d came: %d bytes allocated", test.announced, length, allocated)
		}
		if held := memory.bytes(); held > test.most {
			t.Errorf("%d announced, %d came: %d charged, want at most %d", test.announced, length, held, test.most)
		}
		if b.drop(); memory.bytes() != 0 {
			t.Error("not given back")
		}
	}
}

func ones21() []int {
	ones := make([]int, 20)
	for i := range ones {
		ones[i] = 1
	}
	return ones
}

type nobody struct{}

func (nobody) expel(error) {}

// BenchmarkAmongManyArrivals measures one chunk while n other bodies are incomplete and the memory is used up. The
// search for a victim does not grow with n.
func BenchmarkAmongManyArrivals(b *testing.B) {
	for _, n := range []int{10, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var memory bodyMemory
			open := make([]arrival, n)
			for i := range open {
				open[i].stream = nobody{}
				memory.expect(&open[i], fmt.Sprint(i%100), time.Now(), time.Minute, 0)
				_ = memory.charge(&open[i], 100, 100, 1<<40)
			}
			limit := memory.bytes()
			for b.Loop() {
				loser := memory.most.Min().newest
				identity := loser.identity
				a := arrival{stream: nobody{}}
				memory.expect(&a, "new", time.Now(), time.Minute, 0)
				if err := memory.charge(&a, 50, 50, limit); err != nil || loser.err == nil {
					b.Fatal(err, loser.err)
				}
				memory.release(&a)
				*loser = arrival{stream: nobody{}} // it comes again
				memory.expect(loser, identity, time.Now(), time.Minute, 0)
				_ = memory.charge(loser, 100, 100, limit)
			}
			b.StopTimer()
			for i := range open {
				memory.release(&open[i])
			}
		})
	}
}

// Thousands of bodies open, grow, are expelled and time out concurrently, over real handlers: each has exactly one outcome,
// and the account is zero at the end.
func TestArrivalsUnderRace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, kib(256))
		var all []*conversation
		for i := range 400 {
			c := b.open("FULL_DUPLEX/NONE")
			all = append(all, c)
			go func() {
				c.say(chat("x-tenant", fmt.Sprint(i%7)))
				for j := range 5 {
					c.say(requestBodyOf(strings.Repeat(" ", 500+i*3), false))
					time.Sleep(time.Duration((i*j)%13) * time.Second)
				}
				if i%3 > 0 {
					c.say(requestBodyOf(`{"model":"m"}`, true))
				}
			}()
		}
		time.Sleep(10 * time.Minute)
		immediates := 0
		for _, c := range all {
			sent := c.stream.take()
			for i, m := range sent {
				if isImmediate(m) {
					immediates++
					if i != len(sent)-1 {
						t.Error("something follows the last message")
					}
				}
			}
			c.end()
		}
		if immediates == 0 || immediates == 400 {
			t.Errorf("%d of 400 were turned away: the test shows nothing", immediates)
		}
		all[0].settled(400)
	})
}
