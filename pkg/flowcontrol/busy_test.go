package flowcontrol

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/go-logr/logr"

	"github.com/weir-epp/weir/internal/placement"
	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/scheduling"
)

// A stream waits while the engine reads a prompt too long for its class, and goes at that prompt's first token. If its
// class is at its limit the stream is rejected, and the rejection has the text for the client.
func TestStreamsOfABusyClass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := DefaultConfig()
		threshold, one := int64(10), int64(1)
		perBackend(&cfg, 9, 9)
		cfg.Queue.Classes = []fairqueue.ClassConfig{{Name: "a", Quantum: 100, Limits: fairqueue.ClassLimits{Requests: &one}}}
		cfg.Classes = []dispatch.ClassConfig{{Busy: scheduling.BusyRule{PrefillTokens: &threshold}}}
		scheduler, err := scheduling.New(scheduling.DefaultConfig())
		if err != nil {
			t.Fatal(err)
		}
		board := scheduling.NewBoard(scheduler, nil)
		board.SetSnapshot(scheduling.NewSnapshot(1, []scheduling.Endpoint{{ID: 0, Address: "10.0.0.1:1", Ready: true}}))
		c, err := New(cfg, placement.On(board), logr.Discard())
		if err != nil {
			t.Fatal(err)
		}
		c.SetBackends(numbered(1), nil, nil)
		offer := func(ctx context.Context, prompt int64) (*Lease, error) {
			q, err := scheduler.Prepare(board.Snapshot(), scheduling.Ask{})
			if err != nil {
				t.Fatal(err)
			}
			q.Rate(&scheduling.Ratings{Prompt: prompt})
			p := fairqueue.PromptOf(prompt, 0)
			return c.TryEnqueue(ctx, &Request{Path: &fairqueue.Path{Class: "a", Prompt: p}, Cost: fairqueue.Cost(p.Uncached()), Placement: q})
		}
		long, err := offer(t.Context(), 11)
		if err != nil || !long.AwaitsFirstToken() {
			t.Fatalf("the first one: %v", err)
		}
		var second *Lease
		go func() { second, _ = offer(t.Context(), 1) }()
		synctest.Wait()
		if s := c.State(); s.Queued != 1 {
			t.Fatalf("%d wait", s.Queued)
		}
		_, err = offer(t.Context(), 1)
		limit, rejection := new(fairqueue.LimitError), new(Rejection)
		if !errors.As(err, &rejection) || rejection.Outcome != OutcomeQueueFull || rejection.RetryAfter <= 0 || !errors.As(err, &limit) ||
			*limit != (fairqueue.LimitError{Class: "a", Limit: fairqueue.LimitRequests, Current: 1, Most: 1}) {
			t.Errorf("beyond the limit: %+v, %+v", rejection, limit)
		}
		long.OnFirstToken()
		synctest.Wait()
		if second == nil || long.AwaitsFirstToken() || !second.AwaitsFirstToken() {
			t.Fatal("the first token has come, and the second one waits")
		}
		long.OnFirstToken() // only the first counts
		for _, l := range []*Lease{long, second} {
			l.OnRequestComplete(Completion{Status: 200})
		}
		if s := c.State(); s.Stock != 0 || s.Queued != 0 || board.Prompts(0) != 0 {
			t.Errorf("at the end: %+v, %d tokens to read", s, board.Prompts(0))
		}
	})
}
