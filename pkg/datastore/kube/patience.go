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

// forever, as a timeout, is none.
const forever time.Duration = -1

// Between two attempts to reach an apiserver that does not answer pass retryTime to twice that, at random, since many
// clients wait for it.
const retryTime = time.Second

// callTimeout bounds a request to the apiserver other than a list or a watch: one that is never answered would end what
// its caller has to do.
const callTimeout = 10 * time.Second

// Lists and watches are paced: client-go asks again at once after some answers, such as 410 Gone.
const (
	readsPerSecond = 10
	readsBurst     = 30
)

// patience is a transport to the apiserver that knows whether it answers. It repeats lists and watches that get no answer,
// or one that only says that it is not the time for one, until they are answered: client-go would wait for up to a minute
// between two attempts, and a pool that is out of date for longer than the apiserver was away sends requests to pods that
// are gone. It is the outermost transport, so that each attempt has the newest token.
type patience struct {
	next    http.RoundTripper
	log     logr.Logger
	up      prometheus.Gauge
	refused func(Permission) // called when a list or watch was forbidden
	reads   flowcontrol.RateLimiter

	mu   sync.Mutex
	seen bool // whether there was an answer, or none
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
			} // else it was given up, which says nothing of the apiserver
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
			again = false // client-go has to understand it
		}
		if !again || !reads || !pause(r.Context(), retryTime+rand.N(retryTime)) {
			return response, err
		}
		if response != nil {
			_ = response.Body.Close()
		}
	}
}

// isPage reports whether an answer is text for people: then something before the apiserver has answered.
func isPage(r *http.Response) bool {
	return strings.HasPrefix(r.Header.Get("Content-Type"), "text/html")
}

// readingOf returns which permission a request takes, and reports whether it lists or watches objects.
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
