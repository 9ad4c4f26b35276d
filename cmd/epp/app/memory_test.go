package app

import "testing"

func TestSoftLimitStaysBelowTheContainers(t *testing.T) {
	for _, c := range []struct {
		bodies    int64
		record    int64
		container uint64
		want      int64
	}{
		{1 << 30, 0, 0, 2<<30 + 512<<20},
		{1 << 30, 0, 8 << 30, 2<<30 + 512<<20},
		{1 << 30, 0, 1 << 30, 966367641},       // 90 %
		{1 << 30, 0, 1 << 63, 2<<30 + 512<<20}, // what no limit looks like to some
		{1 << 30, 1 << 30, 0, 4<<30 + 1<<30},   // the recording, a quarter more, and both once more for a reader
	} {
		if got := softLimit(c.bodies, c.record, c.container); got != c.want {
			t.Errorf("%d bytes of bodies and %d of a recording in %d: %d, want %d", c.bodies, c.record, c.container, got, c.want)
		}
	}
}
