package estimate

import "math/bits"

// A scale counts numbers in buckets of 1/8 octave: the width of a bucket is at most 1/8 of its lower end. Numbers
// below 16 have a bucket each.
const scaleOctave = 8

// onScale returns the bucket of a number, which is at least 0.
func onScale(n int64) int {
	if n <= 0 {
		return 0
	}
	octave := bits.Len64(uint64(n)) - 1
	return 1 + octave*scaleOctave + int((n-1<<octave)*scaleOctave>>octave)
}

// endOfScale returns the largest number of a bucket.
func endOfScale(bucket int) int64 {
	if bucket == 0 {
		return 0
	}
	octave, part := (bucket-1)/scaleOctave, int64((bucket-1)%scaleOctave)
	return 1<<octave + ceilDiv((part+1)<<octave, scaleOctave) - 1
}
