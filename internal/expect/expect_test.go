package expect

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// failing is a test that records its failure.
type failing struct {
	testing.TB
	said string
}

func (f *failing) Helper() {}

func (f *failing) Fatalf(format string, args ...any) {
	f.said = fmt.Sprintf(format, args...)
	panic(f)
}

// A wait ends with its condition, or fails the test at its bound, with the last error.
func TestWithin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, asked := time.Now(), 0
		True(t, "the third time", func() bool { asked++; return asked == 3 })
		if took := time.Since(began); asked != 3 || took > 20*time.Millisecond {
			t.Errorf("asked %d times in %v", asked, took)
		}
		f := &failing{TB: t}
		defer func() {
			recovered := recover() == f
			if took := time.Since(began); !recovered || took < time.Second || took > 2*time.Second || !strings.Contains(f.said, "the end: not within 1s: no luck") {
				t.Errorf("after %v: %q", took, f.said)
			}
		}()
		Within(f, time.Second, "the end", func() error { return errors.New("no luck") })
	})
}

// A metric is the sum of the series with these labels. A page with a status other than 200 is an error.
func TestScrape(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/metrics" {
			w.WriteHeader(http.StatusNotFound)
		}
		_, _ = fmt.Fprint(w, "# TYPE a counter\na{x=\"1\",y=\"1\"} 1\na{x=\"1\",y=\"2\"} 2\na{x=\"2\",y=\"2\"} 4\n")
	}))
	defer server.Close()
	metrics, err := Scrape(server.URL + "/metrics")
	if err != nil || metrics.Sum("a") != 7 || metrics.Sum("a", "x", "1") != 3 || metrics.Sum("a", "x", "1", "y", "2") != 2 || metrics.Sum("b") != 0 {
		t.Errorf("%v, %v", metrics, err)
	}
	if _, err := Scrape(server.URL + "/none"); err == nil || !strings.Contains(err.Error(), "status 404") {
		t.Errorf("a page that is not there: %v", err)
	}
}
