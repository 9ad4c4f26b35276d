package stock

import (
	"math/big"
	"math/rand/v2"
	"reflect"
	"testing"
)

// A lease is settled exactly once, and only if it is held.
func TestSettleOnce(t *testing.T) {
	l := New(DefaultConfig())
	l.SetBackends(pool(1))
	lease := NewLease(3, 40, true)
	if l.Settle(&lease) || lease.Held() {
		t.Error("settled without being held")
	}
	l.Take(&lease, 0)
	if l.Stock() != 1 || l.Tokens() != 40 || l.Promoted() != 1 || l.Inflight(3) != 1 || !lease.Held() {
		t.Errorf("after taking: %+v", l)
	}
	if !l.Settle(&lease) || l.Settle(&lease) || lease.Held() {
		t.Error("settled other than once")
	}
	if l.Stock() != 0 || l.Tokens() != 0 || l.Promoted() != 0 || l.InUse() != 0 {
		t.Errorf("after settling: stock %d, tokens %d, promoted %d", l.Stock(), l.Tokens(), l.Promoted())
	}
	l.Take(&lease, 0)
	defer func() {
		if recover() == nil {
			t.Error("taken twice without a panic")
		}
	}()
	l.Take(&lease, 0)
}

// The holder of a lease cannot change its tokens, so that nothing of it can remain in the ledger.
func TestSettleGivesBackWhatWasTaken(t *testing.T) {
	lease := NewLease(1, 100, false)
	for field := range reflect.TypeOf(lease).Fields() {
		if field.IsExported() {
			t.Errorf("%s can be changed while the lease is held", field.Name)
		}
	}
	l := New(DefaultConfig())
	l.SetBackends(pool(1))
	l.Take(&lease, 0)
	if lease.Tier() != 1 || lease.Tokens() != 100 || lease.Promoted() || l.Tokens() != 100 {
		t.Errorf("taken: %+v", lease)
	}
	if l.Settle(&lease); l.Tokens() != 0 || l.Stock() != 0 {
		t.Errorf("stock %d, tokens %d remain", l.Stock(), l.Tokens())
	}
}

// FuzzLedger runs a sequence of operations and compares each result with the definitions, computed from the list of
// leases with rational numbers.
func FuzzLedger(f *testing.F) {
	for seed := range uint64(16) {
		f.Add(randomBytes(seed, 150))
	}
	f.Fuzz(func(t *testing.T, data []byte) { runLedger(t, data) })
}

// Random sequences of operations agree with the definitions.
func TestLedgerAgainstDefinitions(t *testing.T) {
	for seed := range uint64(1000) {
		runLedger(t, randomBytes(seed+100, 200))
	}
}

func randomBytes(seed uint64, n int) []byte {
	random, data := rand.New(rand.NewPCG(seed, 0)), make([]byte, n)
	for i := range data {
		data[i] = byte(random.Uint32())
	}
	return data
}

func runLedger(t *testing.T, data []byte) {
	t.Helper()
	below := func(n int) int {
		if len(data) == 0 {
			return 0
		}
		b := data[0]
		data = data[1:]
		return int(b) % n
	}
	d := definitions{config: DefaultConfig(), ready: map[BackendID]Backend{}, foreign: map[BackendID]Amount{}}
	l := New(d.config)
	var settled []*heldLease
	for len(data) > 0 {
		switch below(13) {
		case 0, 1, 2:
			lease := NewLease(below(4), Tokens(1+below(50)), below(4) == 0)
			at := BackendID(below(5))
			l.Take(&lease, at)
			d.held = append(d.held, &heldLease{&lease, lease.tokens, at})
		case 3, 4:
			if n := len(d.held); n > 0 {
				i := below(n)
				lease := d.held[i]
				d.held = append(d.held[:i], d.held[i+1:]...)
				settled = append(settled, lease)
				if !l.Settle(lease.Lease) {
					t.Fatal("a held lease was not settled")
				}
			}
		case 5:
			if n := len(settled); n > 0 {
				lease := settled[below(n)]
				if l.Settle(lease.Lease) || l.Adjust(lease.Lease, 7) {
					t.Fatal("settled twice, or adjusted after it")
				}
			}
		case 6:
			if n := len(d.held); n > 0 {
				lease := d.held[below(n)]
				lease.standsFor = Tokens(below(200))
				if !l.Adjust(lease.Lease, lease.standsFor) {
					t.Fatal("a held lease was not adjusted")
				}
			}
		case 12:
			if n := len(d.held); n > 0 {
				lease := d.held[below(n)]
				lease.at = BackendID(below(5))
				l.Move(lease.Lease, lease.at)
			}
		case 7: // all at once; backends that stay keep their foreign stock
			ready, foreign := map[BackendID]Backend{}, map[BackendID]Amount{}
			var list []Backend
			for id := range BackendID(4) {
				if below(2) == 0 {
					continue
				}
				b := Backend{ID: id, Slots: int32(max(0, below(40)-20)), MaxTokens: Tokens(max(0, below(900)-600))}
				ready[id], foreign[id] = b, d.foreign[id]
				list = append(list, b)
			}
			d.ready, d.foreign = ready, foreign
			l.SetBackends(list)
		case 8:
			b := Backend{ID: BackendID(below(4)), Slots: int32(max(0, below(40)-20)), MaxTokens: Tokens(max(0, below(900)-600))}
			d.ready[b.ID] = b
			returned := l.SetBackend(b)
			if kept, ok := l.Bounds(b.ID); !ok || kept != returned {
				t.Fatalf("contributes %v, and %v is kept", returned, kept)
			}
		case 9:
			id := BackendID(below(4))
			if _, known := d.ready[id]; l.RemoveBackend(id) != known {
				t.Fatalf("backend %d removed: %t", id, !known)
			}
			delete(d.ready, id)
			delete(d.foreign, id)
		case 10:
			id, stock := BackendID(below(4)), Amount{below(6), Tokens(below(100))}
			_, known := d.ready[id]
			if _, ready := l.SetForeign(Foreign{id, stock}); ready != known {
				t.Fatalf("foreign stock at backend %d counted: %t", id, !known)
			}
			if known {
				d.foreign[id] = stock
			}
		case 11:
			d.byRank = nil
			first := below(4)
			for i := range 4 {
				d.byRank = append(d.byRank, Reservation{Tier: (first + i) % 4, Floor: below(6), PerSlot: Micro(below(9)) * 50_001})
			}
			l.SetReservations(d.byRank)
			d.config = Config{
				WatermarkPerBackend: 1 + below(9), PercentageDeviationForBounds: 1 + Micro(below(255))*3_919,
				LowerBoundPerBackend: below(3) - 1, UpperBoundPerBackend: -1, SlotsPerBackend: max(0, below(6)-3),
				Tokens: TokensConfig{Watermark: Tokens(max(0, below(120)-40))},
			}
			if below(3) == 0 && d.config.Tokens.Watermark > 0 {
				d.config.Tokens.Upper = d.config.Tokens.Watermark + Tokens(below(10))
			}
			l.Configure(d.config)
		}
		checkLedger(t, l)
		d.compare(t, l)
	}
}

// definitions is the ledger as the formulas define it.
type definitions struct {
	config  Config
	ready   map[BackendID]Backend
	foreign map[BackendID]Amount
	byRank  []Reservation
	held    []*heldLease
}

// heldLease is a lease with its expected tokens.
type heldLease struct {
	*Lease
	standsFor Tokens
	at        BackendID
}

// inflight returns the leases of a tier at ready backends.
func (d *definitions) inflight(tier int) (n int) {
	for _, lease := range d.held {
		if _, ready := d.ready[lease.at]; ready && lease.Tier() == tier {
			n++
		}
	}
	return n
}

// at returns the number of requests at a backend, ours and others'.
func (d *definitions) at(id BackendID) int {
	n := d.foreign[id].Requests
	for _, lease := range d.held {
		if lease.at == id {
			n++
		}
	}
	return n
}

// bound returns one bound of one backend: the reported one, else the explicit one, else the watermark plus or minus the
// deviation, by the sign.
func (d *definitions) bound(reports, explicit, watermark, sign int64) *big.Rat {
	deviation := big.NewRat(sign*int64(d.config.PercentageDeviationForBounds), 1_000_000)
	switch {
	case reports > 0:
		return big.NewRat(reports, 1)
	case explicit >= 0:
		return big.NewRat(explicit, 1)
	default:
		return deviation.Mul(deviation.Add(deviation, big.NewRat(1, 1)), big.NewRat(watermark, 1))
	}
}

// own returns one backend's own lower (-1) or upper (1) bound in requests.
func (d *definitions) own(b Backend, sign int64) *big.Rat {
	slots, lower := b.Slots, d.config.LowerBoundPerBackend
	if slots == 0 {
		slots = int32(d.config.SlotsPerBackend)
	}
	if sign > 0 {
		lower = -1
	}
	return d.bound(int64(slots), int64(lower), int64(d.config.WatermarkPerBackend), sign)
}

// bounds returns the pool's lower (-1) or upper (1) bound in requests.
func (d *definitions) bounds(sign int64) *big.Rat {
	requests := new(big.Rat)
	for _, b := range d.ready {
		requests.Add(requests, d.own(b, sign))
	}
	return requests
}

// room returns the requests that fit below the lower (-1) or upper (1) bounds, with one request less at the backend
// without. A backend has what it lacks of its own bound; if that is less than a request, it may borrow the rest from others
// that have less to spare. held is what is there.
func (d *definitions) room(sign int64, without BackendID) (room, held int) {
	spare := new(big.Rat)
	for id, b := range d.ready {
		n := d.at(id)
		if id == without {
			n--
		}
		held += n
		lacks := new(big.Rat).Sub(d.own(b, sign), big.NewRat(int64(n), 1))
		for lacks.Cmp(big.NewRat(1, 1)) >= 0 {
			room++
			lacks.Sub(lacks, big.NewRat(1, 1))
		}
		for lacks.Cmp(big.NewRat(-1, 1)) <= 0 { // it has too many, which is nobody else's
			lacks.Add(lacks, big.NewRat(1, 1))
		}
		spare.Add(spare, lacks)
	}
	return room + max(0, ceil(spare)), held
}

const nowhere BackendID = -1

// below reports whether the stock is below a bound after a request is gone from a backend.
func (d *definitions) below(sign int64, without BackendID) bool {
	room, held := d.room(sign, without)
	return len(d.ready) > 0 && (held == 0 || room > 0)
}

func ceil(r *big.Rat) int {
	quotient, rest := new(big.Int).QuoRem(r.Num(), r.Denom(), new(big.Int))
	if rest.Sign() > 0 {
		return int(quotient.Int64()) + 1
	}
	return int(quotient.Int64())
}

func (d *definitions) compare(t *testing.T, l *Ledger) {
	t.Helper()
	if want := d.below(-1, nowhere); l.BelowLower() != want {
		t.Fatalf("%+v: below the lower bound: %t", d, !want)
	}
	if want := d.below(1, nowhere); l.BelowUpper() != want {
		t.Fatalf("%+v: below the upper bound: %t", d, !want)
	}
	for id := range BackendID(5) {
		b, ready := d.ready[id]
		n := d.at(id)
		takes := ready && (n <= 1 || big.NewRat(int64(n-1), 1).Cmp(d.own(b, 1)) < 0)
		if l.TakesWithoutOne(id) != takes {
			t.Fatalf("%+v: backend %d takes another without one: %t", d, id, !takes)
		}
		if takes && n > 0 && l.BelowUpperWithoutOne() && !d.below(1, id) {
			t.Fatalf("%+v: below the upper bound without one at backend %d: true", d, id)
		}
		if d.whole() && takes && n > 0 && !l.BelowUpperWithoutOne() {
			t.Fatalf("%+v: below the upper bound without one at backend %d: false", d, id)
		}
		// No other backend is the reason that one gets nothing which has room for a whole request.
		for sign, below := range map[int64]bool{-1: l.BelowLower(), 1: l.BelowUpper()} {
			if room := ready && big.NewRat(int64(n+1), 1).Cmp(d.own(b, sign)) <= 0; room && !below {
				t.Fatalf("%+v: backend %d has room, and nothing goes there", d, id)
			}
		}
	}
	tokens := Tokens(0)
	for _, lease := range d.held {
		tokens += lease.standsFor
	}
	capacity, foreign := ceil(d.bounds(1)), 0
	for _, f := range d.foreign {
		foreign += f.Requests
	}
	if l.Capacity() != capacity || l.Stock() != len(d.held) || l.Tokens() != tokens || l.Foreign() != foreign || l.Ready() != len(d.ready) {
		t.Fatalf("capacity %d (%d), stock %d (%d), tokens %d (%d), foreign %d (%d), ready %d (%d)", l.Capacity(), capacity,
			l.Stock(), len(d.held), l.Tokens(), tokens, l.Foreign(), foreign, l.Ready(), len(d.ready))
	}
	room, held := d.room(1, nowhere)
	if l.AtReady() != held || l.PromotedAtReady() != d.promoted() {
		t.Fatalf("%d at ready backends (%d), %d promoted (%d)", l.AtReady(), held, l.PromotedAtReady(), d.promoted())
	}
	remaining, free := capacity, room
	for _, r := range d.byRank {
		desired := ceil(new(big.Rat).Mul(big.NewRat(int64(r.PerSlot), 1_000_000), big.NewRat(int64(capacity), 1)))
		reserved := min(capacity, max(r.Floor, desired), remaining)
		remaining -= reserved
		if l.Reserved(r.Tier) != reserved || l.Headroom(r.Tier) != free || l.Available(r.Tier) != max(0, free) {
			t.Fatalf("tier %d: reserved %d (%d), headroom %d (%d), available %d",
				r.Tier, l.Reserved(r.Tier), reserved, l.Headroom(r.Tier), free, l.Available(r.Tier))
		}
		free -= max(0, reserved-d.inflight(r.Tier))
	}
}

// whole reports whether every bound is a whole number of requests.
func (d *definitions) whole() bool {
	for _, b := range d.ready {
		if !d.own(b, 1).IsInt() {
			return false
		}
	}
	return true
}

// promoted returns the promoted leases at ready backends.
func (d *definitions) promoted() (n int) {
	for _, lease := range d.held {
		if _, ready := d.ready[lease.at]; ready && lease.Promoted() {
			n++
		}
	}
	return n
}
