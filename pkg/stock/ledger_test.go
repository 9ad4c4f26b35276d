package stock

import (
	"math/big"
	"math/rand/v2"
	"reflect"
	"testing"
)

// TestSettleOnce: a lease is settled exactly once, and only when it is held.
func TestSettleOnce(t *testing.T) {
	l := New(DefaultConfig())
	l.SetBackends(pool(1))
	lease := NewLease(3, 40, true)
	if l.Settle(&lease) || lease.Held() {
		t.Error("settled without being held")
	}
	l.Take(&lease)
	if l.Stock() != 1 || l.Cost() != 40 || l.Promoted() != 1 || l.Inflight(3) != 1 || !lease.Held() {
		t.Errorf("after taking: %+v", l)
	}
	if !l.Settle(&lease) || l.Settle(&lease) || lease.Held() {
		t.Error("settled other than once")
	}
	if l.Stock() != 0 || l.Cost() != 0 || l.Promoted() != 0 || l.InUse() != 0 {
		t.Errorf("after settling: stock %d, cost %d, promoted %d", l.Stock(), l.Cost(), l.Promoted())
	}
	l.Take(&lease)
	defer func() {
		if recover() == nil {
			t.Error("taken twice without a panic")
		}
	}()
	l.Take(&lease)
}

// TestSettleGivesBackWhatWasTaken: whoever holds a lease cannot change what it stands for, so that nothing of it can
// remain in the ledger.
func TestSettleGivesBackWhatWasTaken(t *testing.T) {
	lease := NewLease(1, 100, false)
	for field := range reflect.TypeOf(lease).Fields() {
		if field.IsExported() {
			t.Errorf("%s can be changed while the lease is held", field.Name)
		}
	}
	l := New(DefaultConfig())
	l.SetBackends(pool(1))
	l.Take(&lease)
	if lease.Tier() != 1 || lease.Cost() != 100 || lease.Promoted() || l.Cost() != 100 {
		t.Errorf("taken: %+v", lease)
	}
	if l.Settle(&lease); l.Cost() != 0 || l.Stock() != 0 {
		t.Errorf("stock %d, cost %d remain", l.Stock(), l.Cost())
	}
}

// FuzzLedger runs a sequence of operations and compares each answer with the definitions, computed anew from the list
// of leases with rational numbers.
func FuzzLedger(f *testing.F) {
	for seed := range uint64(16) {
		f.Add(randomBytes(seed, 150))
	}
	f.Fuzz(func(t *testing.T, data []byte) { runLedger(t, data) })
}

// TestLedgerAgainstDefinitions is the same on random sequences.
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
	d := definitions{config: DefaultConfig()}
	l := New(d.config)
	var settled []*Lease
	for len(data) > 0 {
		switch below(8) {
		case 0, 1, 2:
			lease := NewLease(below(4), int64(1+below(50)), below(4) == 0)
			l.Take(&lease)
			d.held = append(d.held, &lease)
		case 3, 4:
			if n := len(d.held); n > 0 {
				i := below(n)
				lease := d.held[i]
				d.held = append(d.held[:i], d.held[i+1:]...)
				settled = append(settled, lease)
				if !l.Settle(lease) {
					t.Fatal("a held lease was not settled")
				}
			}
		case 5:
			if n := len(settled); n > 0 && l.Settle(settled[below(n)]) {
				t.Fatal("settled twice")
			}
		case 6:
			d.backends = nil
			for range below(5) {
				d.backends = append(d.backends, Backend{Slots: max(0, below(40)-20)})
			}
			l.SetBackends(d.backends)
		case 7:
			d.byRank = nil
			first := below(4)
			for i := range 4 {
				d.byRank = append(d.byRank, Reservation{Tier: (first + i) % 4, Floor: below(6), PerSlot: Micro(below(9)) * 50_001})
			}
			l.SetReservations(d.byRank)
			d.config = Config{
				WatermarkPerBackend: 1 + below(9), PercentageDeviationForBounds: 1 + Micro(below(255))*3_919,
				LowerBoundPerBackend: below(3) - 1, UpperBoundPerBackend: -1, SlotsPerBackend: max(0, below(6)-3),
			}
			l.Configure(d.config)
		}
		checkLedger(t, l)
		d.compare(t, l)
	}
}

// definitions is the ledger as the formulas have it.
type definitions struct {
	config   Config
	backends []Backend
	byRank   []Reservation
	held     []*Lease
}

func (d *definitions) inflight(tier int) (n int) {
	for _, lease := range d.held {
		if lease.tier == tier {
			n++
		}
	}
	return n
}

// bounds are the pool's lower and upper bound.
func (d *definitions) bounds() (lower, upper *big.Rat) {
	lower, upper = new(big.Rat), new(big.Rat)
	for _, b := range d.backends {
		lo, hi := new(big.Rat), new(big.Rat)
		deviation := big.NewRat(int64(d.config.PercentageDeviationForBounds), 1_000_000)
		switch {
		case b.Slots > 0:
			lo.SetInt64(int64(b.Slots))
			hi.Set(lo)
		case d.config.SlotsPerBackend > 0:
			lo.SetInt64(int64(d.config.SlotsPerBackend))
			hi.Set(lo)
		default:
			watermark := big.NewRat(int64(d.config.WatermarkPerBackend), 1)
			lo.Mul(watermark, new(big.Rat).Sub(big.NewRat(1, 1), deviation))
			hi.Mul(watermark, new(big.Rat).Add(big.NewRat(1, 1), deviation))
			if d.config.LowerBoundPerBackend >= 0 {
				lo.SetInt64(int64(d.config.LowerBoundPerBackend))
			}
		}
		lower.Add(lower, lo)
		upper.Add(upper, hi)
	}
	return lower, upper
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
	lower, upper := d.bounds()
	stock := big.NewRat(int64(len(d.held)), 1)
	idle := len(d.backends) > 0 && len(d.held) == 0
	if want := idle || stock.Cmp(lower) < 0; l.BelowLower() != want {
		t.Fatalf("stock %v, lower bound %v: %t", stock, lower, l.BelowLower())
	}
	if want := idle || stock.Cmp(upper) < 0; l.BelowUpper() != want {
		t.Fatalf("stock %v, upper bound %v: %t", stock, upper, l.BelowUpper())
	}
	for n := range 4 {
		without := big.NewRat(int64(len(d.held)-n), 1)
		want := len(d.backends) > 0 && (len(d.held) <= n || without.Cmp(upper) < 0)
		if l.BelowUpperWithout(n) != want {
			t.Fatalf("stock %v without %d, upper bound %v: %t", stock, n, upper, !want)
		}
	}
	capacity := ceil(upper)
	cost := int64(0)
	for _, lease := range d.held {
		cost += lease.cost
	}
	if l.Capacity() != capacity || l.Stock() != len(d.held) || l.Cost() != cost {
		t.Fatalf("capacity %d (%d), stock %d (%d), cost %d (%d)", l.Capacity(), capacity, l.Stock(), len(d.held), l.Cost(), cost)
	}
	remaining, free := capacity, capacity-len(d.held)
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
