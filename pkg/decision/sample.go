package decision

import (
	"math"
	"math/bits"

	"github.com/weir-epp/weir/internal/splitmix"
)

// Sample is a share of requests, chosen by their IDs. The zero value chooses none.
type Sample struct {
	below uint64 // hashes below it are chosen
	all   bool
}

// SampleOne is the share of all requests.
const SampleOne = 1_000_000

// SampleOf returns the sample of share millionths of all requests.
func SampleOf(share int64) Sample {
	if share >= SampleOne {
		return Sample{all: true}
	}
	hi, lo := bits.Mul64(uint64(max(0, share)), math.MaxUint64)
	below, _ := bits.Div64(hi, lo, SampleOne)
	return Sample{below: below}
}

// None reports whether no request is chosen.
func (s Sample) None() bool { return !s.all && s.below == 0 }

// Has reports whether the request with this ID is chosen.
func (s Sample) Has(id string) bool {
	const offset, prime = 14695981039346656037, 1099511628211 // FNV-1a
	hash := uint64(offset)
	for i := range len(id) {
		hash = (hash ^ uint64(id[i])) * prime
	}
	return s.has(hash)
}

// HasNumber reports whether a request without an ID is chosen, by its number among such requests.
func (s Sample) HasNumber(n uint64) bool { return s.has(n) }

func (s Sample) has(key uint64) bool { return s.all || splitmix.Mix(key) < s.below }
