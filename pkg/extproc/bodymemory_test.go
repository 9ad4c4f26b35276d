package extproc

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-epp/weir/pkg/flowcontrol"
)

// kept is the oracle's view of a body: its arrival and the bytes it holds.
type kept struct {
	arrival
	tenant string
	bytes  int64
	since  int // time of its first byte
	whole  bool
}

// onlooker is the oracle: it sums up anew at each step, while the account keeps sums and heaps.
type onlooker []*kept

func (o onlooker) bytes(counts func(*kept) bool) (sum int64) {
	for _, k := range o {
		if counts(k) {
			sum += k.bytes
		}
	}
	return sum
}

// incomplete returns the bytes of a tenant's incomplete bodies.
func (o onlooker) incomplete(tenant string) int64 {
	return o.bytes(func(k *kept) bool { return !k.whole && k.tenant == tenant })
}

func (o onlooker) newest(k *kept) bool {
	for _, other := range o {
		if !other.whole && other.bytes > 0 && other.tenant == k.tenant && other.since > k.since {
			return false
		}
	}
	return true
}

// mayGo reports whether a body may be expelled so that asker gets n more bytes: it is its tenant's newest incomplete
// body, and no tenant has more bytes in such bodies. The bytes that asker wants count as its own; of two equal tenants
// it is asker's.
func (o onlooker) mayGo(k, asker *kept, n int64) bool {
	asks := int64(-1) // a whole body belongs to no tenant's claim
	if !asker.whole {
		asks = o.incomplete(asker.tenant) + n
	}
	mine := o.incomplete(k.tenant)
	if !asker.whole && k.tenant == asker.tenant {
		mine = asks
	} else if mine <= asks {
		return false
	}
	for _, other := range o {
		if o.incomplete(other.tenant) > mine {
			return false
		}
	}
	return !k.whole && o.newest(k)
}

// Random bodies grow, become whole and go. Their total never exceeds limits.maxBodyBytesTotal by a byte. A whole body
// is never expelled. The tenant with the most bytes in incomplete bodies loses its newest one. No body is expelled for
// an arrival that is refused for its size. An arrival that would itself be expelled is refused.
func TestWhoLosesABodyIsWhoHasTheMost(t *testing.T) {
	const limit = 1000
	lost, refused := 0, 0
	for seed := range uint64(100) {
		random := rand.New(rand.NewPCG(seed, 9))
		var memory bodyMemory
		var all onlooker
		for step := range 200 {
			if len(all) == 0 || random.IntN(3) == 0 {
				k := &kept{tenant: fmt.Sprint(random.IntN(4)), since: -1}
				k.stream = nobody{}
				memory.expect(&k.arrival, k.tenant, time.Now(), time.Hour, 0)
				all = append(all, k)
			}
			i := random.IntN(len(all))
			k := all[i]
			switch random.IntN(8) {
			case 0:
				if err := memory.complete(&k.arrival); err != nil {
					t.Fatal(err)
				}
				k.whole = true
			case 1:
				memory.release(&k.arrival)
				all = append(all[:i], all[i+1:]...)
			default:
				n := 1 + random.Int64N(100)
				whole := all.bytes(func(k *kept) bool { return k.whole })
				err := memory.charge(&k.arrival, 0, n, limit)
				losers := 0
				for more := true; more; { // in the order in which they may be expelled
					more = false
					for j, victim := range all {
						if victim.err != nil && all.mayGo(victim, k, n) {
							all = append(all[:j], all[j+1:]...)
							losers, more = losers+1, true
							break
						}
					}
				}
				for _, victim := range all {
					if victim.err != nil {
						t.Fatalf("seed %d, step %d: a body of tenant %s went, which had not the most, or was not its newest",
							seed, step, victim.tenant)
					}
				}
				lost += losers
				tight := all.bytes(func(*kept) bool { return true })+n > limit
				first := *k
				if k.since < 0 {
					first.since = step
				}
				switch {
				case err == nil && tight:
					t.Fatalf("seed %d, step %d: more than the limit was given", seed, step)
				case err == nil:
					k.since, k.bytes = first.since, k.bytes+n
				case !errors.Is(err, flowcontrol.ErrNoMemory):
					t.Fatal(err)
				case whole+n > limit && losers > 0:
					t.Fatalf("seed %d, step %d: a body was expelled for an arrival that cannot fit", seed, step)
				case whole+n <= limit && (!tight || !all.mayGo(&first, k, n)):
					t.Fatalf("seed %d, step %d: an arrival was turned away although another should go", seed, step)
				default:
					refused++
				}
			}
			if held := all.bytes(func(*kept) bool { return true }); memory.bytes() != held {
				t.Fatalf("seed %d, step %d: %d bytes charged, %d are held", seed, step, memory.bytes(), held)
			}
		}
		for _, k := range all {
			memory.release(&k.arrival)
		}
		if memory.bytes() != 0 || memory.incomplete != 0 || len(memory.owners) != 0 || memory.due.bodies.Len() != 0 {
			t.Fatalf("seed %d: something is left: %d bytes, %d owners", seed, memory.bytes(), len(memory.owners))
		}
		memory.due.timer.Stop()
	}
	if lost < 300 || refused < 300 {
		t.Errorf("%d were lost and %d refused: the test shows little", lost, refused)
	}
}

// One part of a body expels a bounded number of others, however small they are, because all bodies wait for the one lock.
func TestOnePartTurnsAwayAFew(t *testing.T) {
	var memory bodyMemory
	var small [1000]arrival
	for i := range small {
		small[i].stream = nobody{}
		memory.expect(&small[i], fmt.Sprint(i%10), time.Now(), time.Hour, 0)
		if err := memory.charge(&small[i], 1, 1, 1000); err != nil {
			t.Fatal(err)
		}
	}
	whole := arrival{stream: nobody{}}
	if err := memory.charge(&whole, 900, 900, 1000); !errors.Is(err, flowcontrol.ErrNoMemory) {
		t.Errorf("got %v", err)
	}
	if left := memory.bytes(); left < 900 {
		t.Errorf("%d of 1000 bodies are left", left)
	}
	for i := range small {
		memory.release(&small[i])
	}
	memory.due.timer.Stop()
}

// A part or the end of a body that has just been expelled gets the reason as an error, and holds no memory.
func TestPartOfABodyThatWasGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var memory bodyMemory
		a := arrival{stream: nobody{}}
		memory.expect(&a, "x", time.Now(), time.Second, 0)
		time.Sleep(2 * time.Second)
		if err := memory.charge(&a, 1, 1, 1000); !errors.Is(err, flowcontrol.ErrBodyTimeout) || memory.bytes() != 0 {
			t.Errorf("a part: %v, %d bytes", err, memory.bytes())
		}
		if err := memory.complete(&a); !errors.Is(err, flowcontrol.ErrBodyTimeout) {
			t.Errorf("the end: %v", err)
		}
	})
}

// Messages in an inbox count like bodies, up to the limit and not a byte more.
func TestTakeUpToTheLimit(t *testing.T) {
	var memory bodyMemory
	if !memory.take(10, 10) || memory.take(1, 10) || memory.bytes() != 10 {
		t.Errorf("%d bytes of 10", memory.bytes())
	}
}

// timed records when its body is expelled.
type timed struct{ at chan time.Time }

func (s timed) expel(error) { s.at <- time.Now() }

// Each of many bodies is expelled at its own deadline, for any other deadlines and any order: a short one after a long
// one, and a body that receives more after one that receives nothing.
func TestEachBodyHasItsOwnTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(1, 2))
		var memory bodyMemory
		var bodies [300]arrival
		var want [len(bodies)]time.Time
		for i := range bodies {
			s := timed{make(chan time.Time, 1)}
			bodies[i].stream = s
			timeout, announced := time.Duration(1+random.IntN(100))*time.Second, random.Int64N(5<<20)
			memory.expect(&bodies[i], "x", time.Now(), timeout, announced)
			came := random.Int64N(5 << 20)
			if err := memory.charge(&bodies[i], came, 1, 1<<30); err != nil {
				t.Fatal(err)
			}
			want[i] = time.Now().Add(timeout + time.Duration((announced+came)/(64<<10))*time.Second)
			time.Sleep(time.Duration(random.IntN(100)) * time.Millisecond)
		}
		time.Sleep(10 * time.Minute)
		for i := range bodies {
			select {
			case at := <-bodies[i].stream.(timed).at:
				if !at.Equal(want[i]) {
					t.Errorf("body %d was given up %v after its time", i, at.Sub(want[i]))
				}
			default:
				t.Errorf("body %d is still awaited", i)
			}
		}
	})
}
