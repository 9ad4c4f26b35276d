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
)

// forever, as a timeout, is none.
const forever time.Duration = -1

// Between two attempts to reach an apiserver that does not answer pass retryTime to twice that, at random, since many
// clients wait for it.
const retryTime = time.Second

// callTimeout bounds a request to the apiserver other than a list or a watch: one that is never answered would end what
// its caller has to do.
const callTimeout = 10 * time.Second

// patience is a transport to the apiserver that knows whether it answers. It repeats lists and watches that get no
// connection, no more than a load balancer's answer (502, 503), or that there are too many requests (429), until they are
// answered: client-go would wait for up to a minute between two attempts, and a pool that is out of date for longer than
// the apiserver was away sends requests to pods that are gone.
type patience struct {
	next http.RoundTripper
	log  logr.Logger
	up   prometheus.Gauge

	mu   sync.Mutex
	seen bool // whether there was an answer, or none
	down bool
}

func newPatience(next http.RoundTripper, log logr.Logger, up prometheus.Gauge) *patience {
	return &patience{next: next, log: log, up: up}
}

// RoundTrip implements http.RoundTripper.
func (p *patience) RoundTrip(r *http.Request) (*http.Response, error) {
	for {
		response, err := p.next.RoundTrip(r)
		if gone := r.Context().Err(); err != nil && gone != nil {
			if errors.Is(gone, context.DeadlineExceeded) {
				p.answers(false, err)
			} // else it was given up, which says nothing of the apiserver
			return nil, fmt.Errorf("kube: %w", err)
		}
		again := err != nil
		switch {
		case err != nil:
			p.answers(false, err)
		case response.StatusCode >= http.StatusInternalServerError:
			p.answers(false, errors.New(response.Status))
			again = response.StatusCode == http.StatusBadGateway || response.StatusCode == http.StatusServiceUnavailable
		default:
			p.answers(true, nil)
			again = response.StatusCode == http.StatusTooManyRequests
		}
		if !again || !repeatable(r) || !pause(r.Context(), retryTime+rand.N(retryTime)) {
			return response, err
		}
		if response != nil {
			_ = response.Body.Close()
		}
	}
}

// repeatable reports whether a request lists or watches objects.
func repeatable(r *http.Request) bool {
	return r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/namespaces/")
}

// answers notes whether the apiserver answers, and logs it if that is new.
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

// pause waits, and reports whether ctx is still not done after that.
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
