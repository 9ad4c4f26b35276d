package kube

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// apiserver answers each request with the next status; 0 is no connection.
type apiserver struct {
	statuses []int
	asked    int
}

// RoundTrip implements http.RoundTripper.
func (a *apiserver) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	status := a.statuses[min(a.asked, len(a.statuses)-1)]
	a.asked++
	if status == 0 {
		return nil, errors.New("connection refused")
	}
	return &http.Response{StatusCode: status, Status: http.StatusText(status), Body: io.NopCloser(strings.NewReader(""))}, nil
}

func gauge(t *testing.T, g prometheus.Gauge) float64 {
	t.Helper()
	var m dto.Metric
	if err := g.Write(&m); err != nil {
		t.Fatal(err)
	}
	return m.GetGauge().GetValue()
}

// Lists and watches wait for an apiserver that is away, everything else is told so at once; and the gauge knows.
func TestPatience(t *testing.T) {
	const pods = "https://apiserver/api/v1/namespaces/serving/pods?watch=true"
	for _, c := range []struct {
		why         string
		method, url string
		statuses    []int
		asked, got  int // got 0: an error
		up          float64
	}{
		{"an answer", http.MethodGet, pods, []int{200}, 1, 200, 1},
		{"away for a while", http.MethodGet, pods, []int{0, 0, 0, 200}, 4, 200, 1},
		{"a load balancer before it", http.MethodGet, pods, []int{503, 502, 200}, 3, 200, 1},
		{"too many requests", http.MethodGet, pods, []int{429, 429, 200}, 3, 200, 1},
		{"too many writes", http.MethodPost, "https://apiserver/apis/events.k8s.io/v1/namespaces/serving/events", []int{429}, 1, 429, 1},
		{"a refusal is an answer", http.MethodGet, pods, []int{403, 200}, 2, 200, 1},
		{"a token that is not accepted", http.MethodGet, pods, []int{401, 401, 200}, 3, 200, 1},
		{"no etcd", http.MethodGet, pods, []int{500, 504, 200}, 3, 200, 1},
		{"an error that clients have to understand", http.MethodGet, pods, []int{410}, 1, 410, 1},
		{"a refusal of something else", http.MethodGet, "https://apiserver/apis", []int{403}, 1, 403, 1},
		{"discovery has a timeout of its own", http.MethodGet, "https://apiserver/apis", []int{0}, 1, 0, 0},
		{"writing", http.MethodPost, "https://apiserver/apis/events.k8s.io/v1/namespaces/serving/events", []int{0}, 1, 0, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			up := prometheus.NewGauge(prometheus.GaugeOpts{Name: "up"})
			server := &apiserver{statuses: c.statuses}
			request, err := http.NewRequestWithContext(t.Context(), c.method, c.url, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			response, err := newPatience(server, logr.Discard(), up, func(Permission) {}).RoundTrip(request)
			took := time.Since(began)
			got := 0
			if response != nil {
				got = response.StatusCode
				_ = response.Body.Close()
			}
			if got != c.got || (err != nil) != (c.got == 0) || server.asked != c.asked || gauge(t, up) != c.up {
				t.Errorf("%s: status %d, %v, asked %d times, up %g", c.why, got, err, server.asked, gauge(t, up))
			}
			waits := time.Duration(c.asked - 1)
			if took < waits*retryTime || took > waits*2*retryTime {
				t.Errorf("%s: %d times in %s", c.why, c.asked, took)
			}
		})
	}
}

// A request that is given up ends, and says nothing of the apiserver.
func TestPatienceEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up := prometheus.NewGauge(prometheus.GaugeOpts{Name: "up"})
		p := newPatience(&apiserver{statuses: []int{200, 0}}, logr.Discard(), up, func(Permission) {})
		ctx, stop := context.WithTimeout(t.Context(), time.Hour)
		defer stop()
		for range 2 {
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://apiserver/api/v1/namespaces/a/pods", http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			response, err := p.RoundTrip(request)
			if err == nil {
				_ = response.Body.Close()
			}
		}
		if ctx.Err() == nil {
			t.Error("it ended before it was given up")
		}
		ended, stop := context.WithCancel(t.Context())
		stop()
		other := newPatience(&apiserver{statuses: []int{0}}, logr.Discard(), up, func(Permission) {})
		up.Set(1)
		request, err := http.NewRequestWithContext(ended, http.MethodGet, "https://apiserver/api/v1/namespaces/a/pods", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if response, err := other.RoundTrip(request); err == nil {
			_ = response.Body.Close()
			t.Error("answered")
		}
		if gauge(t, up) != 1 {
			t.Error("a request that was given up counts as the apiserver's failure")
		}
	})
}

// mute is an apiserver that takes requests and never answers.
type mute struct{}

// RoundTrip implements http.RoundTripper.
func (mute) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// An apiserver that is silent does not answer.
func TestSilenceIsNoAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up := prometheus.NewGauge(prometheus.GaugeOpts{Name: "up"})
		up.Set(1)
		ctx, stop := context.WithTimeout(t.Context(), callTimeout)
		defer stop()
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://apiserver/apis/llm-d.ai/v1alpha2", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if response, err := newPatience(mute{}, logr.Discard(), up, func(Permission) {}).RoundTrip(request); err == nil {
			_ = response.Body.Close()
			t.Error("answered")
		}
		if gauge(t, up) != 0 {
			t.Error("the gauge says that it answers")
		}
	})
}
