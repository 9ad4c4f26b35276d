package extproc

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"time"

	"google.golang.org/grpc/peer"
)

// unobservedRun is the number of consecutive streams ending too early before it is reported.
const unobservedRun = 16

// unobservedWithin is the time after Weir's last reply within which an end is too early.
const unobservedWithin = 5 * time.Millisecond

// unobservedAfter is the time without any longer-lived stream before it is reported.
const unobservedAfter = time.Hour

// unobservedEnvoys bounds the watched Envoys. Beyond it the Envoy whose last stream ended first is forgotten.
const unobservedEnvoys = 64

// unobserved notices if an Envoy ends streams before the responses have ended, so that Weir does not see completions.
// With response headers and trailers both on SKIP, a stream ends just after the reply to the request; with only
// response trailers on SKIP, just after the response headers, which is visible only for streamed responses. No message
// states the modes of trailers, so Weir has to observe the ends.
//
// A client that leaves, or a response that ends, may end a stream as early. In these cases Envoy closes the stream
// before it cancels it, but it cancels an unneeded stream without closing it (measured on 1.40, TestEndsOfStreams). A
// response that is complete when Weir replies to its headers looks like an unneeded stream, so one longer-lived stream
// proves that its Envoy is configured well. It proves nothing about another Envoy, so each is watched by its address.
// Envoys behind one address, through a proxy, count as one, and so do all without an IP address.
type unobserved struct {
	mu     sync.Mutex
	envoys map[netip.Addr]*endings
}

// endings is the record of the ends of one Envoy's streams.
type endings struct {
	atRequest, atHeaders int       // streams in a row that ended too early
	lived                time.Time // when a longer-lived stream last ended
	last                 time.Time // when a stream last ended
}

// envoyOf returns the address of the Envoy whose stream has this context; the zero value if it is not an IP address.
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

// ended records the end, now, of an Envoy's stream with a dispatched request. lastAnswer is the time of Weir's last
// reply, closed whether Envoy closed the stream first, sawResponse whether the last reply was to the response headers,
// and streamed whether the response was streamed. It returns true when either case must be reported for this Envoy.
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
