package loadgen

import (
	"maps"
	"net/http"
	"slices"
	"testing"
	"time"
)

// rejects answers the first requests with the status and, in turn, each of the headers, and later ones with 200. It
// records the arrival times.
type rejects struct {
	status  int
	headers []http.Header
	came    []time.Duration
	epoch   time.Time
}

func (s *rejects) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	n := len(s.came)
	s.came = append(s.came, time.Since(s.epoch))
	if n < len(s.headers) {
		maps.Copy(w.Header(), s.headers[n])
		w.WriteHeader(s.status)
	}
}

// sentAt runs one request against the rejections, with up to retry.Max retries, and returns the arrival times of its
// attempts and its result.
func sentAt(t *testing.T, s *rejects, retry Retry) (came []time.Duration, result Result) {
	t.Helper()
	inBubble(t, s.ServeHTTP, func(b *bubble) {
		s.epoch = b.epoch
		w := load(ClosedLoop{Workers: 1})
		w.Requests, w.Retry = 1, retry
		result = b.run(w)[0]
	})
	return s.came, result
}

func headers(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h.Set(pairs[i], pairs[i+1])
	}
	return h
}

// A rejected request is retried exactly after retry-after-ms, which takes precedence over retry-after, up to Max times.
func TestRetryObeysTheServer(t *testing.T) {
	s := &rejects{status: 503, headers: []http.Header{
		headers("retry-after-ms", "1234", "retry-after", "2"),
		headers("retry-after", "3"),
		headers("retry-after-ms", "0.5"),
	}}
	came, result := sentAt(t, s, Retry{Max: 3})
	wantTimes(t, "attempts", came, 0, 1234*time.Millisecond, 4234*time.Millisecond, 4234*time.Millisecond+500*time.Microsecond)
	if !result.OK() || result.Attempts != 4 || result.Total != came[3] || result.RetryAfterMS != "" {
		t.Errorf("the result is that of the last attempt, its time the whole: %+v", result)
	}
}

// After its last retry, a request ends as rejected, with the last answer's headers.
func TestRetriesAreBounded(t *testing.T) {
	again := headers("retry-after-ms", "10", "x-weir-reason", "queue-full", "retry-after", "1")
	for most, want := range map[int]int{0: 1, 2: 3} {
		came, result := sentAt(t, &rejects{status: 429, headers: slices.Repeat([]http.Header{again}, 5)}, Retry{Max: most})
		if len(came) != want || result.Attempts != want || !result.Rejected() || result.Status != 429 ||
			result.Reason != "queue-full" || result.RetryAfterMS != "10" || result.RetryAfter != "1" {
			t.Errorf("%d retries: %d attempts, %+v", most, len(came), result)
		}
	}
}

// Retries follow the statuses of the real clients. x-should-retry overrides them.
func TestWhatIsRetried(t *testing.T) {
	for _, test := range []struct {
		status int
		should string
		want   int
	}{
		{408, "", 2},
		{409, "", 2},
		{429, "", 2},
		{500, "", 2},
		{503, "", 2},
		{400, "", 1},
		{404, "", 1},
		{413, "", 1},
		{503, "false", 1},
		{400, "true", 2},
		{200, "true", 1},
	} {
		s := &rejects{status: test.status, headers: []http.Header{headers("x-should-retry", test.should, "retry-after-ms", "1")}}
		if came, _ := sentAt(t, s, Retry{Max: 5}); len(came) != test.want {
			t.Errorf("%d with x-should-retry %q: sent %d times, want %d", test.status, test.should, len(came), test.want)
		}
	}
}

// Without a readable time from the server, the wait is the clients' backoff: 0.5 s doubled up to 8 s, minus up to a
// quarter, drawn from the seed.
func TestBackoff(t *testing.T) {
	senseless := []http.Header{
		headers(),
		headers("retry-after-ms", "soon", "retry-after", "-1"),
		headers("retry-after", "Wed, 21 Oct 2026 07:28:00 GMT"),
		headers("retry-after-ms", "1e300"), headers(), headers(), headers("retry-after", "NaN"),
	}
	draw := func(seed uint64) []time.Duration {
		came, _ := sentAt(t, &rejects{status: 503, headers: senseless}, Retry{Max: 7, Seed: seed})
		return came
	}
	first := draw(1)
	for i, longest := range []time.Duration{500, 1000, 2000, 4000, 8000, 8000, 8000} {
		longest *= time.Millisecond
		if wait := first[i+1] - first[i]; wait > longest || wait < longest*3/4 {
			t.Errorf("wait %d is %v, want %v less up to a quarter", i+1, wait, longest)
		}
	}
	if !slices.Equal(first, draw(1)) || slices.Equal(first, draw(2)) {
		t.Error("the jitter does not follow its seed")
	}
}

// A connection that breaks before the answer leads to a retry. One that breaks during the answer does not.
func TestBrokenConnections(t *testing.T) {
	for within, want := range map[bool]int{false: 3, true: 1} {
		came := 0
		inBubble(t, func(w http.ResponseWriter, _ *http.Request) {
			came++
			if within {
				w.Header().Set("Content-Length", "10")
				_, _ = w.Write([]byte("half"))
				_ = http.NewResponseController(w).Flush()
			}
			panic(http.ErrAbortHandler)
		}, func(b *bubble) {
			w := load(ClosedLoop{Workers: 1})
			w.Requests, w.Retry = 1, Retry{Max: 2}
			if r := b.run(w)[0]; r.Fault() != "broken" || r.Attempts != want || (r.Status == 200) != within {
				b.Errorf("within the answer %v: %+v", within, r)
			}
		})
		if came != want {
			t.Errorf("within the answer %v: sent %d times, want %d", within, came, want)
		}
	}
}
