package app

import (
	"context"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/expect"
	"github.com/weir-epp/weir/internal/status"
)

// Requests that run at the engines without a stream of Weir's, for some time, are a reason against the health, unless
// another replica has sent them.
func TestPassedBy(t *testing.T) {
	address, page := engineSaying(t)
	o := testOptions()
	o.Endpoints = []string{address}
	o.Scrape.Interval = 100 * time.Millisecond
	r := start(t, o)
	passed := func(after time.Duration) bool {
		q := status.Query{}
		for _, x := range r.statusDocument(&q, time.Now().Add(after)).Reasons {
			if x.ID == "passed-by" {
				return true
			}
		}
		return false
	}
	noted := func(want int) {
		t.Helper()
		expect.True(t, "engines with requests of others", func() bool {
			r.pool.mu.Lock()
			defer r.pool.mu.Unlock()
			return len(r.pool.strangers) == want
		})
	}
	page.Store(says(0, 0))
	noted(0)
	if passed(time.Hour) {
		t.Error("passed by without a request")
	}
	page.Store(says(0, 1)) // a request that waits in the engine counts too
	noted(1)
	if passed(0) || !passed(passedByAfter) {
		t.Error("it is not passedByAfter until Weir is passed by")
	}
	r.pool.mu.Lock()
	r.pool.recorded = true
	r.pool.mu.Unlock()
	if passed(passedByAfter) {
		t.Error("passed by, though another replica has requests in flight")
	}
	r.pool.mu.Lock()
	r.pool.foreign()
	recorded := r.pool.recorded
	r.pool.mu.Unlock()
	if recorded || !passed(passedByAfter) {
		t.Error("a record that is over counts")
	}
	r.pool.mu.Lock()
	for id, since := range r.pool.strangers {
		if r.pool.noteStrangers(id, 2, since.Add(time.Hour)); !r.pool.strangers[id].Equal(since) {
			t.Error("a later scrape begins the time anew")
		}
	}
	r.pool.mu.Unlock()
	ctx, end := context.WithCancel(t.Context())
	stream := r.request(ctx)
	granted(t, stream)
	noted(0)
	if passed(time.Hour) {
		t.Error("passed by while a stream is open")
	}
	page.Store(says(3, 0)) // of which two are others'
	expect.True(t, "a scrape", func() bool {
		r.pool.mu.Lock()
		defer r.pool.mu.Unlock()
		return len(r.pool.heard) > 0
	})
	before := time.Now()
	end()
	expect.True(t, "the stream's end", func() bool { return r.pool.server.Streams() == 0 })
	page.Store(says(1, 0))
	noted(1)
	if !passed(passedByAfter) {
		t.Error("not passed by after the stream")
	}
	r.pool.mu.Lock()
	for id, since := range r.pool.strangers {
		if since.Before(before) {
			t.Error("the time of the stream counts")
		}
		r.pool.strangers[id] = since.Add(-time.Hour)
	}
	r.pool.mu.Unlock()
	if passed(0) {
		t.Error("passed by since before the last stream")
	}
	page.Store(says(0, 0))
	noted(0)
	if passed(time.Hour) {
		t.Error("passed by after the last request")
	}
}
