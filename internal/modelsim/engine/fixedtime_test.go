package engine

import (
	"testing"
	"time"
)

const ms = time.Millisecond

func TestFixedTimeServesInArrivalOrder(t *testing.T) {
	s := newScript(t, Config{Slots: 2, ServiceTime: 100 * ms})
	for range 3 {
		s.submit(Job{Prompt: 1, Output: 5})
		s.advance(10 * ms)
	}
	s.wantLoad(2, 1)
	s.advance(time.Second)
	s.want("100: 1 finished", "110: 2 finished", "200: 3 finished")
	s.wantLoad(0, 0)
}

func TestFixedTimeSpreadsTokensEvenly(t *testing.T) {
	s := newScript(t, Config{Slots: 1, ServiceTime: 100 * ms})
	s.submit(Job{Prompt: 1, Output: 4, Streamed: true})
	s.advance(time.Second)
	s.want("25: 1 has 1", "50: 1 has 2", "75: 1 has 3", "100: 1 finished")
	if got := s.e.Load().GeneratedTokens; got != 4 {
		t.Errorf("%d tokens generated, want 4", got)
	}
}

func TestZeroServiceTimeEndsWithinSubmit(t *testing.T) {
	s := newScript(t, Config{})
	s.submit(Job{Prompt: 1, Output: 2, Streamed: true})
	s.want("0: 1 has 1", "0: 1 finished")
}

func TestAbortFreesTheSlotAfterTheDelay(t *testing.T) {
	s := newScript(t, Config{Slots: 1, ServiceTime: 100 * ms, AbortDelay: 40 * ms})
	running := s.submit(Job{Prompt: 1, Output: 1})
	waiting := s.submit(Job{Prompt: 1, Output: 1})
	s.submit(Job{Prompt: 1, Output: 1})
	s.advance(10 * ms)
	s.abort(waiting)
	s.abort(running)
	s.wantLoad(1, 2)
	s.advance(time.Second)
	s.want("50: 2 aborted", "50: 1 aborted", "150: 3 finished")
}

func TestAbortOfWhatHasEndedIsNothing(t *testing.T) {
	s := newScript(t, Config{Slots: 1, ServiceTime: 100 * ms, AbortDelay: 40 * ms})
	id := s.submit(Job{Prompt: 1, Output: 1})
	s.advance(90 * ms)
	s.abort(id) // it ends before the delay is over
	s.advance(time.Second)
	s.want("100: 1 finished")
	s.abort(id)
	s.abort(99)
	s.want()
}

func TestFixedTimeCountsTheCacheOfWholeSequences(t *testing.T) {
	s := newScript(t, Config{ServiceTime: 100 * ms, BlockSize: 16, Blocks: 4})
	s.submit(Job{Prompt: 17, Output: 4})
	if got := s.e.Load().KVUsage; got != 0.5 {
		t.Errorf("KV usage %v with 2 blocks of 4, want 0.5", got)
	}
	s.submit(Job{Prompt: 1000, Output: 4})
	if got := s.e.Load().KVUsage; got != 1 {
		t.Errorf("KV usage %v when overfull, want 1", got)
	}
	s.advance(time.Second)
	if got := s.e.Load().KVUsage; got != 0 {
		t.Errorf("KV usage %v at rest, want 0", got)
	}
}
