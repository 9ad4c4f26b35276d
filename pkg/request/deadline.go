package request

import (
	"strconv"
	"time"
)

// deadlineSource is a header with the client's deadline.
type deadlineSource struct {
	slot slot
	grpc bool // the value has gRPC's format; otherwise it is in milliseconds
}

// maxTimeout is the longest timeout in a header. A longer one is ignored.
const maxTimeout = 30 * 24 * time.Hour

// deadline returns the earliest deadline in the headers, or zero if there is none. It ignores unreadable values, and
// values of 0 or less: to Envoy 0 means no timeout.
func (r *Rules) deadline(h *Headers, now time.Time) time.Time {
	var earliest time.Time
	for _, s := range r.deadlines {
		v := h.values[s.slot]
		if v == "" {
			continue
		}
		var timeout time.Duration
		if s.grpc {
			timeout = grpcTimeout(v)
		} else if ms, err := strconv.ParseInt(v, 10, 64); err == nil && ms < int64(maxTimeout/time.Millisecond) {
			timeout = time.Duration(ms) * time.Millisecond
		}
		if timeout <= 0 || timeout > maxTimeout {
			continue
		}
		if at := now.Add(timeout); earliest.IsZero() || at.Before(earliest) {
			earliest = at
		}
	}
	return earliest
}

// grpcTimeout reads 1 to 8 digits and a unit (H, M, S, m, u, n). It returns 0 for anything else.
func grpcTimeout(v string) time.Duration {
	if len(v) < 2 || len(v) > 9 {
		return 0
	}
	n, err := strconv.ParseUint(v[:len(v)-1], 10, 32)
	if err != nil {
		return 0
	}
	var unit time.Duration
	switch v[len(v)-1] {
	case 'H':
		unit = time.Hour
	case 'M':
		unit = time.Minute
	case 'S':
		unit = time.Second
	case 'm':
		unit = time.Millisecond
	case 'u':
		unit = time.Microsecond
	case 'n':
		unit = time.Nanosecond
	default:
		return 0
	}
	if time.Duration(n) > maxTimeout/unit { // n has at most 8 digits
		return 0
	}
	return time.Duration(n) * unit
}
