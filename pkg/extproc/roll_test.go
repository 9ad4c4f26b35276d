package extproc

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/fairqueue"
)

// Without a record a request is charged after the wait, to the moment, as one without usage: also if a record with
// another's ID comes, or one of another replica.
func TestNoRecord(t *testing.T) {
	inBubble(t, "FULL_DUPLEX/NONE", byLog, func(c *conversation) {
		id := c.placedWith()
		c.answered("200")
		for _, strange := range []string{"", id + "0", id[:len(id)-1], newReplica() + "1-2"} {
			c.log(entryOf(strange, used(1, 1)))
		}
		if c.records(recordUnnamed) != 1 || c.records(recordLate) != 2 || c.records(recordUnknown) != 1 {
			t.Errorf("%v unnamed, %v late, %v unknown", c.records(recordUnnamed), c.records(recordLate), c.records(recordUnknown))
		}
		time.Sleep(recordWait - time.Nanosecond)
		synctest.Wait()
		c.wantCharged(0)
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		c.wantCharged(0, 100+2*500)
		c.log(entryOf(id, used(120, 30)))
		c.wantCharged(0, 100+2*500)
		c.wantNothingHeld()
	})
}

// A wait ends in time however many have ended before it, with a record or without.
func TestEveryWaitEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, byLog)
		for i := range 6 {
			c := b.open("FULL_DUPLEX/NONE")
			id := c.placedWith()
			c.answered("200")
			if i%3 == 1 {
				b.log(entryOf(id, used(120, 30)))
			}
			time.Sleep(recordWait)
			synctest.Wait()
			if told := b.controller.leases[i].usage; len(told) != 1 {
				t.Errorf("%d: told %v", i, told)
			}
		}
		b.wantNothingHeld()
	})
}

// The time that a client had counts to when it left, not to when its record came.
func TestWaitingForTheRecordCostsNothing(t *testing.T) {
	inBubble(t, "FULL_DUPLEX/NONE", byLog, func(c *conversation) {
		c.say(chat("x-gateway-model-name", "m"))
		c.say(requestBodyOf(`{"prompt":"`+strings.Repeat("abcd", 100)+`","max_tokens":8000}`, true))
		c.heard()
		c.say(responseHeaders("200", false, "content-type", "text/event-stream"))
		c.heard()
		time.Sleep(100 * time.Second)
		c.end()
		time.Sleep(recordWait)
		synctest.Wait()
		c.wantCharged(0, 100+2*5000)
	})
}

// However many requests end without a record, a bounded number waits: the first ones are charged as without usage.
func TestManyAwaitRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, byLog)
		const more = 10
		for i := range maxAwaited + more {
			c := b.open("NONE/NONE")
			c.say(chat("x-gateway-model-name", "m"))
			c.say(responseHeaders("200", true))
			c.end()
			if i%512 == 0 {
				time.Sleep(time.Millisecond)
			}
		}
		if n := b.server.roll.awaited(); n != maxAwaited {
			t.Errorf("%d wait, want %d", n, maxAwaited)
		}
		b.controller.mu.Lock()
		for i, l := range b.controller.leases {
			if want := i < more; len(l.usage) > 0 != want {
				t.Errorf("%d: told %v", i, l.usage)
			}
		}
		b.controller.mu.Unlock()
		time.Sleep(recordWait)
		synctest.Wait()
		for i, l := range b.controller.leases {
			if len(l.usage) != 1 || len(l.completed) != 1 {
				t.Fatalf("%d: completed %v, told %v", i, l.completed, l.usage)
			}
		}
		b.wantNothingHeld()
	})
}

// With usage: auto nobody waits for records until they come. One request of 64 is named to find out; once a record of one
// has come, all are, and wait. A minute after the last record nobody does.
func TestAutoFindsOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, inTokens)
		ask := func() (id string) {
			c := b.open("FULL_DUPLEX/NONE")
			id = c.placedWith()
			c.answered("200")
			return id
		}
		var ids []string
		for range 2 * probeEvery {
			if id := ask(); id != "" {
				ids = append(ids, id)
			}
			if len(ids) == 0 {
				t.Fatal("the first request does not find out")
			}
		}
		for i, l := range b.controller.leases {
			if len(l.completed) != 1 || l.completed[0].Cost == fairqueue.UnknownCost {
				t.Fatalf("%d: waits", i)
			}
		}
		if len(ids) != 2 {
			t.Fatalf("%d of %d were named", len(ids), 2*probeEvery)
		}
		b.wantNothingHeld()

		b.log(entryOf(newReplica()+"1-2", used(1, 1))) // says nothing of our own
		if b.server.roll.comes() {
			t.Error("another replica's record counts")
		}
		b.log(entryOf(ids[0], used(1, 1)))
		for range 3 {
			n := len(b.controller.leases)
			id := ask()
			b.wantCharged(n)
			b.log(entryOf(id, used(120, 30)))
			b.wantCharged(n, 120+60)
		}

		n := len(b.controller.leases)
		ask()
		time.Sleep(recordWait)
		synctest.Wait()
		if l := b.controller.leases[n]; len(l.usage) != 1 {
			t.Errorf("told %v", l.usage)
		}
		time.Sleep(recordsLately)
		n = len(b.controller.leases)
		ask()
		if l := b.controller.leases[n]; len(l.completed) != 1 || l.completed[0].Cost == fairqueue.UnknownCost {
			t.Error("waits for records that do not come any more")
		}
		b.wantNothingHeld()
	})
}

// Each request has its own wait, however many end after it.
func TestEachAwaitsItsRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, byLog)
		for i := range 4 {
			c := b.open("FULL_DUPLEX/NONE")
			c.placedWith()
			c.answered("200")
			time.Sleep(2 * time.Second)
			synctest.Wait()
			b.controller.mu.Lock()
			for j, l := range b.controller.leases {
				if want := 2*time.Duration(i-j+1)*time.Second >= recordWait; len(l.usage) > 0 != want {
					t.Errorf("%d, after %d more: told %v", j, i-j, l.usage)
				}
			}
			b.controller.mu.Unlock()
		}
		time.Sleep(recordWait)
		synctest.Wait()
		b.wantNothingHeld()
	})
}

// The queue still corrects a request that as many crowd out as may wait, also if nearly as many came between these that
// await nothing.
func TestAwaitedAreCorrected(t *testing.T) {
	if 2*maxAwaited > dispatch.MostLate {
		t.Errorf("%d wait, the last %d are corrected", maxAwaited, dispatch.MostLate)
	}
}
