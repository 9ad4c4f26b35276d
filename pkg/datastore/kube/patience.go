package kube

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/util/flowcontrol"
)

// forever, as a timeout, means no timeout.
const forever time.Duration = -1

// retryTime is the least time between two attempts to reach a silent apiserver. The time is random, up to twice that,
// since many clients wait for the apiserver.
const retryTime = time.Second

// callTimeout bounds a request to the apiserver other than a list or a watch: without it a request that is never
// answered would block its caller for ever.
const callTimeout = 10 * time.Second

// Lists and watches are paced: client-go asks again at once after some answers, such as 410 Gone.
const (
	readsPerSecond = 10
	readsBurst     = 30
)

// patience is a transport to the apiserver that notices whether the apiserver answers. It repeats lists and watches
// without an answer, or with one that asks to retry, until they succeed. client-go would wait up to a minute between
// two attempts, and a pool that stays outdated after the apiserver is back sends requests to pods that are gone. It is
// the outermost transport, so that each attempt has the newest token.
type patience struct {
	next    http.RoundTripper
	log     logr.Logger
	up      prometheus.Gauge
	refused func(Permission) // called when a list or watch was forbidden
	reads   flowcontrol.RateLimiter

	mu   sync.Mutex
	seen bool // whether an answer or its absence has been noted
	down bool
}

func newPatience(next http.RoundTripper, log logr.Logger, up prometheus.Gauge, refused func(Permission)) *patience {
	return &patience{
		next: next, log: log, up: up, refused: refused,
		reads: flowcontrol.NewTokenBucketRateLimiter(readsPerSecond, readsBurst),
	}
}

// RoundTrip implements http.RoundTripper.
func (p *patience) RoundTrip(r *http.Request) (*http.Response, error) {
	reading, reads := readingOf(r)
	for {
		if reads {
			if err := p.reads.Wait(r.Context()); err != nil {
				return nil, fmt.Errorf("kube: %w", err)
			}
		}
		response, err := p.next.RoundTrip(r)
		if gone := r.Context().Err(); err != nil && gone != nil {
			if errors.Is(gone, context.DeadlineExceeded) {
				p.answers(false, err)
			} // otherwise the caller gave up, which does not concern the apiserver
			return nil, fmt.Errorf("kube: %w", err)
		}
		again := true
		switch {
		case err != nil:
			p.answers(false, err)
		case response.StatusCode >= http.StatusInternalServerError || response.StatusCode == http.StatusUnauthorized || isPage(response):
			p.answers(false, errors.New(response.Status))
		case response.StatusCode == http.StatusTooManyRequests:
			p.answers(true, nil)
		case response.StatusCode == http.StatusForbidden:
			p.answers(true, nil)
			if reads {
				p.refused(reading)
			}
		default:
			p.answers(true, nil)
			again = false // client-go must handle it
		}
		if !again || !reads || !pause(r.Context(), retryTime+rand.N(retryTime)) {
			return response, err
		}
		if response != nil {
			_ = response.Body.Close()
		}
	}
}

// isPage reports whether an answer is an HTML page: then a proxy before the apiserver has answered.
func isPage(r *http.Response) bool {
	return strings.HasPrefix(r.Header.Get("Content-Type"), "text/html")
}

// readingOf returns the permission that a request needs, and reports whether it lists or watches objects.
func readingOf(r *http.Request) (p Permission, reads bool) {
	before, after, found := strings.Cut(r.URL.Path, "/namespaces/")
	if !found || r.Method != http.MethodGet {
		return Permission{}, false
	}
	p.Verb = "list"
	if watch := r.URL.Query().Get("watch"); watch == "true" || watch == "1" {
		p.Verb = "watch"
	}
	p.Namespace, p.Resource, _ = strings.Cut(after, "/")
	if _, groupVersion, named := strings.Cut(before, "/apis/"); named {
		p.Group, _, _ = strings.Cut(groupVersion, "/")
	}
	return p, true
}

// answers notes whether the apiserver answers, and logs a change.
func (p *patience) answers(does bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.seen && p.down == !does {
		return
	}
	first := !p.seen
	p.seen, p.down = true, !does
	switch {
	case !does:
		p.up.Set(0)
		p.log.Error(err, "THE APISERVER DOES NOT ANSWER: the last known pods stay in use")
	case first:
		p.up.Set(1)
	default:
		p.up.Set(1)
		p.log.Info("the apiserver answers again")
	}
}

// pause waits, and returns false if ctx is done before.
func pause(ctx context.Context, wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
