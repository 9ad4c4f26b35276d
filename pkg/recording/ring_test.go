package recording

import (
	"bytes"
	"errors"
	"testing"
)

// full returns a segment of a recorder that is full, of one letter.
func full(letter byte) []byte { return bytes.Repeat([]byte{letter}, segmentSize) }

// letters returns the first letters of the segments in a ring.
func letters(t *testing.T, r *ring) (first string) {
	t.Helper()
	segments, err := r.all()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range segments {
		first += string(s[0])
	}
	return first
}

// The oldest segments go first, one at a time, and only while the rest is beyond the limit.
func TestRingKeepsTheLatest(t *testing.T) {
	r := newRing(3 * (segmentSize + segmentHead)) // exactly three
	if r.oldest() != nil {
		t.Error("an empty ring has an oldest segment")
	}
	for _, letter := range []byte("abc") {
		r.push(full(letter))
	}
	if r.oldest() != nil || len(r.wake) != 0 {
		t.Error("a ring that is just full drops a segment, or wakes its follower")
	}
	r.push(full('d'))
	r.push(full('e'))
	if len(r.wake) != 1 {
		t.Error("the follower is not woken")
	}
	if a, b, c := r.oldest(), r.oldest(), r.oldest(); a[0] != 'a' || b[0] != 'b' || c != nil {
		t.Errorf("dropped %c and %c, then %d bytes", a[0], b[0], len(c))
	}
	if got := letters(t, r); got != "cde" {
		t.Errorf("the ring has %s, want cde", got)
	}
}

// The follower may be behind by 16 segments and, in a large ring, by a quarter of it. Then the recording ends for good: it
// has nothing and takes nothing.
func TestRingEndsWhenTheFollowerIsBehind(t *testing.T) {
	for _, test := range []struct{ kept, behind int }{{4, 16}, {160, 40}} {
		r := newRing(test.kept * (segmentSize + segmentHead))
		pushed := 0
		for ; r.err() == nil && pushed < 1000; pushed++ {
			r.push(full('a'))
		}
		if most := test.kept + test.behind; pushed < most || pushed > most+1 {
			t.Errorf("a ring of %d segments has ended after %d", test.kept, pushed)
		}
		if _, err := r.all(); !errors.Is(err, errBehind) || !errors.Is(r.err(), errBehind) {
			t.Errorf("it has ended with %v", err)
		}
		mine := full('z')
		if next := r.push(mine); &next[0] != &mine[0] {
			t.Error("a recording that has ended takes a segment")
		}
		r.recycle(full('y'))
		if r.oldest() != nil || len(r.segments) != 0 || len(r.spare) != 0 || r.size != 0 {
			t.Error("a recording that has ended holds memory")
		}
	}
}

// A segment that was sealed early is copied, and its buffer is used for the next one. Recycled buffers are used again, up to
// 16 of them, but none that is too small.
func TestRingReusesBuffers(t *testing.T) {
	r := newRing(segmentSize)
	early := append(make([]byte, 0, segmentSize), "early"...)
	next := r.push(early)
	if &next[0] != &early[0] {
		t.Error("the buffer of a short segment is not used again")
	}
	copy(next, "other")
	if got := letters(t, r); got != "e" {
		t.Errorf("the ring has %q", got)
	}
	used := full('a')
	r.recycle(make([]byte, segmentSize-1))
	if len(r.spare) != 0 {
		t.Error("a short buffer is kept")
	}
	r.recycle(used)
	if next := r.push(full('b')); len(next) != 0 || &next[:1][0] != &used[0] || len(r.spare) != 0 {
		t.Error("a recycled buffer is not used again")
	}
	if next := r.push(full('c')); len(next) != 0 || cap(next) < segmentSize {
		t.Errorf("a new buffer has room for %d bytes", cap(next))
	}
	for range 100 {
		r.recycle(full('x'))
	}
	if len(r.spare) != leastSlack {
		t.Errorf("%d buffers are kept", len(r.spare))
	}
}

// A ring takes its memory at the beginning, as much as it may have, and of a large one a part; a lower limit gives it back.
func TestRingTakesItsMemoryAtOnce(t *testing.T) {
	for limit, want := range map[int]int{0: 0, 3 * segmentSize: 3, 10 * mostReserved: mostReserved / segmentSize} {
		r := newRing(limit)
		r.reserve()
		if len(r.spare) != want {
			t.Errorf("limit %d: %d segments, want %d", limit, len(r.spare), want)
		}
		if r.resize(limit - 1); len(r.spare) != 0 {
			t.Errorf("limit %d: %d segments are kept under a lower one", limit, len(r.spare))
		}
	}
}
