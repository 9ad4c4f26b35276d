package extproc

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"time"

	"google.golang.org/grpc/peer"
)

// unobservedRun is the number of consecutive streams that have to end too early before that is reported.
const unobservedRun = 16

// unobservedWithin is how soon after Weir's last answer a stream ends too early.
const unobservedWithin = 5 * time.Millisecond

// unobservedAfter is the time in which no stream may have lived on before that is reported.
const unobservedAfter = time.Hour

// unobservedEnvoys bounds the Envoys that are watched. Of more, the one is forgotten whose last stream ended first.
const unobservedEnvoys = 64

// unobserved notices if an Envoy ends the streams before the responses have ended, so that Weir does not see completions.
// With response headers and trailers both on SKIP, that is just after the request was answered; with response trailers
// alone on SKIP, just after the response headers, which shows only if responses are streamed. No message tells the modes
// of trailers, so Weir has to observe what happens.
//
// A client that leaves, or a response that ends, may end a stream as soon. Then Envoy closes the stream and cancels it,
// while a stream that it has no more use for is cancelled at once (measured on 1.40, TestEndsOfStreams). A response that is
// whole when Weir answers its headers looks like the latter, so one stream that lived on proves that its Envoy is right.
// It proves nothing of another Envoy, which may have another configuration: each is watched by its address. Envoys
// behind one address, through a proxy, count as one, and so do all without an IP address.
type unobserved struct {
	mu     sync.Mutex
	envoys map[netip.Addr]*endings
}

// endings is the record of the ends of one Envoy's streams.
type endings struct {
	atRequest, atHeaders int       // streams in a row that ended too early
	lived                time.Time // when one ended last that had lived on
	last                 time.Time // when one ended last
}

// envoyOf returns the address of the Envoy whose stream has this context; the zero value if that is no IP address.
func envoyOf(ctx context.Context) netip.Addr {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return netip.Addr{}
	}
	a, ok := p.Addr.(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	return a.AddrPort().Addr().Unmap()
}

// of returns the state of an Envoy. The caller holds mu.
func (u *unobserved) of(envoy netip.Addr, now time.Time) *endings {
	o := u.envoys[envoy]
	if o == nil {
		if len(u.envoys) >= unobservedEnvoys {
			u.forget()
		}
		if u.envoys == nil {
			u.envoys = map[netip.Addr]*endings{}
		}
		o = &endings{}
		u.envoys[envoy] = o
	}
	o.last = now
	return o
}

// forget forgets the Envoy whose last stream ended first.
func (u *unobserved) forget() {
	var oldest netip.Addr
	var last time.Time
	for envoy, o := range u.envoys {
		if last.IsZero() || o.last.Before(last) {
			oldest, last = envoy, o.last
		}
	}
	delete(u.envoys, oldest)
}

// reset records a stream of an Envoy that lived until its response.
func (u *unobserved) reset(envoy netip.Addr, now time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	o := u.of(envoy, now)
	o.atRequest, o.atHeaders = 0, 0
}

// ended records the end of an Envoy's stream whose request was dispatched: now, after Weir's last answer, whether Envoy
// closed it first, whether the last answer was that to the response headers, and whether the response was streamed. It
// returns true when either case has to be reported of this Envoy.
func (u *unobserved) ended(envoy netip.Addr, now, lastAnswer time.Time, closed, sawResponse, streamed bool) (report bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	o := u.of(envoy, now)
	if closed && sawResponse {
		o.atRequest, o.atHeaders, o.lived = 0, 0, now
		return false
	}
	run := &o.atRequest
	if sawResponse {
		o.atRequest = 0
		if !streamed {
			return false
		}
		run = &o.atHeaders
	}
	if closed || now.Sub(lastAnswer) > unobservedWithin {
		*run = 0
		return false
	}
	if !o.lived.IsZero() && now.Sub(o.lived) < unobservedAfter {
		return false
	}
	*run++
	return *run == unobservedRun
}
