package extproc

import (
	"testing"
	"time"
)

// Each unit of gRPC's timeouts, and values that are not timeouts. Reading one allocates nothing, since each request
// does it.
func TestGRPCTimeout(t *testing.T) {
	for v, want := range map[string]time.Duration{
		"2H": 2 * time.Hour, "3M": 3 * time.Minute, "4S": 4 * time.Second, "50m": 50 * time.Millisecond,
		"60u": 60 * time.Microsecond, "70n": 70, "99999999n": 99_999_999, "720H": maxTimeout, "721H": 0, "99999999H": 0,
		"": 0, "S": 0, "5": 0, "5s": 0, "5 S": 0, "-5S": 0, "123456789S": 0,
	} {
		if got := grpcTimeout(v); got != want {
			t.Errorf("%q: %v, want %v", v, got, want)
		}
	}
	if n := testing.AllocsPerRun(100, func() { grpcTimeout("30S") }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
