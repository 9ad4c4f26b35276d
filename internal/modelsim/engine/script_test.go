package engine

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// script drives an engine in virtual time and records its events, in milliseconds since the epoch.
type script struct {
	t      *testing.T
	e      *Engine
	now    time.Time
	events []string
}

func newScript(t *testing.T, cfg Config) *script {
	t.Helper()
	e, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return &script{t: t, e: e, now: epoch}
}

func (s *script) note(events []Event) {
	for _, ev := range events {
		what := fmt.Sprintf("%d has %d", ev.ID, ev.Tokens)
		switch ev.End {
		case Finished:
			what = fmt.Sprintf("%d finished", ev.ID)
		case Aborted:
			what = fmt.Sprintf("%d aborted", ev.ID)
		case Going:
		}
		s.events = append(s.events, fmt.Sprintf("%d: %s", ev.At.Sub(epoch).Milliseconds(), what))
	}
	checkInvariants(s.t, s.e)
}

func (s *script) submit(job Job) ID {
	id, events := s.e.Submit(s.now, job)
	s.note(events)
	return id
}

func (s *script) abort(id ID) { s.note(s.e.Abort(s.now, id)) }

// advance moves time in one jump.
func (s *script) advance(d time.Duration) {
	s.now = s.now.Add(d)
	s.note(s.e.Advance(s.now))
}

// want compares all events since the last want.
func (s *script) want(events ...string) {
	s.t.Helper()
	got, want := strings.Join(s.events, "\n\t"), strings.Join(events, "\n\t")
	if got != want {
		s.t.Errorf("at %v happened\n\t%s\nwant\n\t%s", s.now.Sub(epoch), got, want)
	}
	s.events = nil
}

func (s *script) wantLoad(running, waiting int) {
	s.t.Helper()
	if l := s.e.Load(); l.Running != running || l.Waiting != waiting {
		s.t.Errorf("at %v %d running and %d waiting, want %d and %d", s.now.Sub(epoch), l.Running, l.Waiting, running, waiting)
	}
}

// checkInvariants checks the invariants after every call.
func checkInvariants(t *testing.T, e *Engine) {
	t.Helper()
	if e.cfg.Slots > 0 && len(e.running) > e.cfg.Slots {
		t.Fatalf("%d running in %d slots", len(e.running), e.cfg.Slots)
	}
	if len(e.live) != len(e.running)+len(e.waiting) {
		t.Fatalf("%d live, but %d running and %d waiting", len(e.live), len(e.running), len(e.waiting))
	}
	if _, ok := e.Next(); !ok && len(e.live) > 0 {
		t.Fatalf("%d live, but nothing will ever happen", len(e.live))
	}
	blocks := 0
	holders := map[int32]int32{}
	for _, s := range e.live {
		blocks += s.blocks - len(s.shared)
		for _, id := range s.shared {
			holders[id]++
		}
		if s.running == slices.Contains(e.waiting, s) {
			t.Fatalf("sequence %d is in the wrong list", s.id)
		}
		if !s.running && s.blocks > 0 {
			t.Fatalf("sequence %d waits and holds %d blocks", s.id, s.blocks)
		}
	}
	if blocks += len(holders); blocks != e.cache.used {
		t.Fatalf("the sequences hold %d blocks, the cache says %d", blocks, e.cache.used)
	}
	checkKept(t, &e.cache, holders)
	if !e.cfg.fixed() && e.cfg.Blocks > 0 && blocks > e.cfg.Blocks {
		t.Fatalf("%d of %d blocks used", blocks, e.cfg.Blocks)
	}
}

// checkKept checks that the cache keeps exactly the known blocks without a holder.
func checkKept(t *testing.T, k *kvCache, holders map[int32]int32) {
	t.Helper()
	kept := map[int32]bool{}
	for id := k.known[0].newer; id != 0; id = k.known[id].newer {
		kept[id] = true
	}
	if len(kept) != k.kept || len(kept)+len(holders) != len(k.byHash) {
		t.Fatalf("%d blocks are kept and %d held of %d known; the cache says %d kept", len(kept), len(holders), len(k.byHash), k.kept)
	}
	for hash, id := range k.byHash {
		if b := k.known[id]; b.hash != hash || b.holders != holders[id] || kept[id] != (b.holders == 0) {
			t.Fatalf("block %d of hash %d is %+v, held by %d, kept: %v", id, hash, b, holders[id], kept[id])
		}
	}
	if k.total > 0 && k.kept > 0 && k.used+k.kept > k.total {
		t.Fatalf("%d used and %d kept of %d blocks", k.used, k.kept, k.total)
	}
}
