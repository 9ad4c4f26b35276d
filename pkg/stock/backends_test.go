package stock

import "testing"

// A pool that grows, changes and shrinks backend by backend has the bounds of one that is set at once, and nothing
// remains when the last backend is removed.
func TestChangedOneByOne(t *testing.T) {
	l := New(withTokens(TokensConfig{Watermark: 1000}))
	if got, want := l.SetBackend(Backend{ID: 7}), (Bounds{Band{1_800_000, 2 * One, 2_200_000}, Band{900 * One, 1000 * One, 1100 * One}}); got != want {
		t.Errorf("the first contributes %v, want %v", got, want)
	}
	l.SetBackend(Backend{ID: 8, Slots: 16, MaxTokens: 5000})
	if l.Ready() != 2 || l.Band() != (Band{17_800_000, 18 * One, 18_200_000}) {
		t.Errorf("two: %v", l.Band())
	}
	l.SetBackend(Backend{ID: 7, Slots: 4}) // it reports now
	if l.Ready() != 2 || l.Band() != (Band{20 * One, 20 * One, 20 * One}) || l.Capacity() != 20 {
		t.Errorf("the first changed: %v", l.Band())
	}
	if bounds, ok := l.Bounds(8); !ok || bounds.Requests.Upper != 16*One || bounds.Tokens.Lower != 5000*One {
		t.Errorf("the second contributes %v, %t", bounds, ok)
	}
	if l.RemoveBackend(9) || !l.RemoveBackend(7) || l.RemoveBackend(7) {
		t.Error("removed other than once")
	}
	if _, ok := l.Bounds(7); ok || l.Capacity() != 16 {
		t.Errorf("capacity %d after the first is gone", l.Capacity())
	}
	if !l.RemoveBackend(8) || l.Band() != (Band{}) || l.Capacity() != 0 || l.BelowUpper() {
		t.Errorf("empty: %v, capacity %d", l.Band(), l.Capacity())
	}
	checkLedger(t, l)
}

// A change of one backend changes the capacity, and with it the reservations.
func TestReservationsFollowEachBackend(t *testing.T) {
	l := slots(80, smgDefaults()...)
	wantReserved(t, l, [4]int{32, 48, 0, 0})
	l.SetBackend(Backend{ID: 5, Slots: 176})
	wantReserved(t, l, [4]int{32, 128, 26, 0})
	l.RemoveBackend(5)
	wantReserved(t, l, [4]int{32, 48, 0, 0})
}

// Other replicas' stock at a backend counts against the bounds and the capacity, and a pool with foreign stock is
// not idle. It belongs to no lease, a later value replaces an earlier one, and it goes with the backend.
func TestForeignStock(t *testing.T) {
	l := both()
	l.SetBackend(Backend{ID: 1}) // 16, 20, 24 requests
	if counts, ready := l.SetForeign(Foreign{0, Amount{15, 1500}}); !ready || counts != (Amount{15, 1500}) || l.Stock() != 0 || l.Tokens() != 0 || l.Capacity() != 24 || !l.BelowLower() {
		t.Errorf("15 foreign: stock %d, tokens %d, below lower %t", l.Stock(), l.Tokens(), l.BelowLower())
	}
	if at := l.ForeignAt(0); at != (Amount{15, 1500}) || l.ForeignAt(1) != (Amount{}) || l.ForeignAt(9) != (Amount{}) {
		t.Errorf("15 foreign: %v there", at)
	}
	if l.Headroom(0) != 12 {
		t.Errorf("15 foreign at one of two: headroom %d, want the 12 of the other", l.Headroom(0))
	}
	lease := take(l, 1, 1)[0]
	if !l.BelowLower() || l.Headroom(0) != 11 {
		t.Errorf("and 1 of ours at the other: below lower %t, headroom %d of 24", l.BelowLower(), l.Headroom(0))
	}
	l.SetForeign(Foreign{1, Amount{Requests: 7}})
	if l.BelowLower() || l.Headroom(0) != 4 {
		t.Errorf("and 7 foreign there: below lower %t, headroom %d of 24", l.BelowLower(), l.Headroom(0))
	}
	l.Settle(lease)
	l.SetForeign(Foreign{1, Amount{Requests: 8}})
	if l.BelowLower() || l.Foreign() != 23 {
		t.Errorf("others keep the pool busy: below lower %t, foreign %d", l.BelowLower(), l.Foreign())
	}
	if counts, ready := l.SetForeign(Foreign{9, Amount{5, 5}}); ready || counts != (Amount{}) || l.Foreign() != 23 {
		t.Errorf("at a backend that is not there: %d", l.Foreign())
	}
	l.SetBackend(Backend{ID: 0, Slots: 3}) // stays, with its foreign stock
	l.SetForeign(Foreign{0, Amount{Requests: 5}})
	l.SetBackends([]Backend{{ID: 0}, {ID: 2}})
	l.Configure(DefaultConfig())
	if l.Foreign() != 5 || !l.BelowUpper() || l.Headroom(0) != 2 {
		t.Errorf("after changes: foreign %d, below upper %t of 4.4, headroom %d", l.Foreign(), l.BelowUpper(), l.Headroom(0))
	}
	lease = take(l, 1, 1)[0]
	l.SetForeign(Foreign{0, Amount{5, 50}})
	for _, leaves := range []func(){func() { l.RemoveBackend(0) }, func() { l.SetBackends([]Backend{{ID: 2}}) }} {
		leaves() // it holds a lease, so the ledger knows it still
		if at := l.ForeignAt(0); at != (Amount{}) {
			t.Errorf("%v of others at a backend that is not ready", at)
		}
		l.SetBackends([]Backend{{ID: 0}, {ID: 2}})
		l.SetForeign(Foreign{0, Amount{5, 50}})
	}
	l.Settle(lease)
	l.RemoveBackend(0)
	if l.Foreign() != 0 || !l.BelowLower() {
		t.Errorf("its backend is gone: foreign %d", l.Foreign())
	}
	l.SetBackend(Backend{ID: 0})
	if l.Foreign() != 0 {
		t.Errorf("its backend is back: foreign %d", l.Foreign())
	}
	checkLedger(t, l)
}

// Foreign stock uses up the unreserved capacity before it affects a reservation.
func TestForeignStockUsesNoReservation(t *testing.T) {
	l := slots(10, floors(4, 0, 0, 0)...)
	l.SetForeign(Foreign{0, Amount{Requests: 5}})
	if l.Available(system) != 5 || l.Available(bulk) != 1 {
		t.Errorf("system %d, bulk %d, want 5 and 1", l.Available(system), l.Available(bulk))
	}
	l.SetForeign(Foreign{0, Amount{Requests: 12}})
	if l.Available(system) != 0 || l.Headroom(system) != 0 || l.AvailableTo() != 0 {
		t.Errorf("system %d, headroom %d", l.Available(system), l.Headroom(system))
	}
}
