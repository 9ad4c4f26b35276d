package app

import "testing"

func TestSoftLimitStaysBelowTheContainers(t *testing.T) {
	for _, c := range []struct {
		bodies    int64
		container uint64
		want      int64
	}{
		{1 << 30, 0, 2<<30 + 512<<20},
		{1 << 30, 8 << 30, 2<<30 + 512<<20},
		{1 << 30, 1 << 30, 966367641},       // 90 %
		{1 << 30, 1 << 63, 2<<30 + 512<<20}, // what no limit looks like to some
	} {
		if got := softLimit(c.bodies, c.container); got != c.want {
			t.Errorf("%d bytes of bodies in %d: %d, want %d", c.bodies, c.container, got, c.want)
		}
	}
}
