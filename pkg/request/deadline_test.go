package request

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

// The earliest deadline counts. Values that cannot be read, and those of 0 or less, are ignored.
func TestDeadlineHeaders(t *testing.T) {
	cfg := DefaultConfig()
	cfg.DeadlineHeaders = []string{"x-envoy-expected-rq-timeout-ms", "gRPC-Timeout"}
	now := time.Unix(1000, 0)
	tests := []struct {
		ms, grpc string
		want     time.Duration // 0: none
	}{
		{"1500", "", 1500 * time.Millisecond},
		{"1500", "1S", time.Second},
		{"1500", "2S", 1500 * time.Millisecond},
		{"0", "2S", 2 * time.Second},
		{"", "100m", 100 * time.Millisecond},
		{"", "3H", 3 * time.Hour},
		{"", "7u", 7 * time.Microsecond},
		{"", "7n", 7},
		{"", "2M", 2 * time.Minute},
		{"0", "", 0},
		{"-5", "S", 0},
		{"soon", "1x", 0},
		{"99999999999999999999", "99999999H", 0},
		{"9223372036854775807", "123456789S", 0},
	}
	for _, test := range tests {
		q, err := (&sent{cfg: cfg, now: now, headers: headers("x-envoy-expected-rq-timeout-ms", test.ms, "grpc-timeout", test.grpc)}).read()
		if err != nil {
			t.Fatal(err)
		}
		got := q.Deadline
		if test.want == 0 && !got.IsZero() || test.want != 0 && got.Sub(now) != test.want {
			t.Errorf("%q, %q: %v", test.ms, test.grpc, got.Sub(now))
		}
	}
}
