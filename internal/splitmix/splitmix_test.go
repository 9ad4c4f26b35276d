package splitmix

import "testing"

// The numbers are those of Steele, Lea and Flood's generator for the seed 1234567.
func TestMix(t *testing.T) {
	state := uint64(1234567)
	for i, want := range []uint64{6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821} {
		if got := Mix(state); got != want {
			t.Errorf("number %d is %d, want %d", i, got, want)
		}
		state += 0x9e3779b97f4a7c15
	}
}
