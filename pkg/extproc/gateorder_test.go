package extproc

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
)

// The possible events of a request after its destination was sent, in any order.
const (
	gateHeaders = iota // the answer's headers come to the gate
	gateBody           // its first token
	gateEnd            // the gate's stream ends: timed out, or cut
	mainHeaders        // the headers come to the main stream
	preempt            // a higher tier takes the lease, if it can still be taken
	clientGone         // Envoy resets both streams
	completion         // the answer has ended: both streams end
	numEvents
)

var eventNames = [numEvents]string{"gateHeaders", "gateBody", "gateEnd", "mainHeaders", "preempt", "clientGone", "completion"}

// proxy is Envoy's part in the two streams of one request, as far as it determines the next possible events.
type proxy struct {
	main, gate *conversation
	id         string
	lease      *fakeLease

	gateSpoke, gateBodySent   bool // the gate's stream is open, a body message was sent on it
	gateOpen, mainOpen        bool // the streams
	passedGate                bool // the gate has answered the headers, or is gone
	askedMain                 bool
	over                      bool // the client or the answer is gone
	preempted                 bool // the lease was taken
	rejected, headersReleased bool // the client's view
}

// possible reports whether an event can happen now.
func (p *proxy) possible(event int) bool {
	if p.over || !p.mainOpen && event != gateEnd && event != gateHeaders {
		return false
	}
	switch event {
	case gateHeaders: // also for a rejection, which comes to the gate unless it has begun with the answer
		return !p.gateSpoke && !p.askedMain
	case gateBody:
		return p.gateOpen && !p.gateBodySent
	case gateEnd:
		return p.gateOpen
	case mainHeaders: // without a gate's stream too: it may be out of reach
		return !p.askedMain && (!p.gateSpoke || p.passedGate)
	}
	return true
}

// do makes an event happen, with its consequences.
func (p *proxy) do(t *testing.T, event int) {
	switch event {
	case gateHeaders:
		p.gateSpoke, p.gateOpen = true, true
		if p.rejected {
			p.gate.arrives(p.id, responseHeaders("503", false, reasonHeader, "preempted"))
		} else {
			p.gate.arrives(p.id, sse())
		}
	case gateBody:
		p.gateBodySent = true
		p.gate.say(responseBodyOf("data: x\n\n", false))
	case gateEnd:
		p.gate.end()
		p.gateOpen, p.passedGate = false, true
	case mainHeaders:
		p.askedMain = true
		p.main.say(sse())
	case preempt:
		p.preempted = p.lease.tryPreempt() || p.preempted
	case clientGone:
		p.main.cancel()
		p.gate.cancel()
		p.mainOpen, p.gateOpen, p.over = false, false, true
	case completion:
		p.main.end()
		p.gate.end()
		p.mainOpen, p.gateOpen, p.over = false, false, true
	}
	p.look(t)
}

// look reads the replies.
func (p *proxy) look(t *testing.T) {
	for _, m := range p.main.stream.take() {
		switch {
		case p.rejected:
			t.Errorf("the main stream says %s after its last message", render(m))
		case isImmediate(m):
			p.rejected = true
			if p.headersReleased {
				t.Error("an answer is cut")
			}
			p.mainOpen = false
			if p.gateOpen { // Envoy ends it
				p.gate.end()
				p.gateOpen = false
			}
		case m.GetResponseHeaders() != nil:
			p.headersReleased = true
		}
	}
	for _, m := range p.gate.stream.take() {
		if isImmediate(m) {
			t.Errorf("the gate rejects instead of the main stream: %s", render(m))
		}
		if isHeaders(m) {
			p.passedGate = true
			if p.preempted && !p.rejected {
				t.Error("a preempted answer passes the gate")
			}
		}
	}
	if p.passedGate {
		p.gateOpen = false // the stream that answers the headers ends
	}
}

func isHeaders(m *extprocv3.ProcessingResponse) bool { return m.GetResponseHeaders() != nil }

// permutations calls f with every order of n events.
func permutations(n int, f func([]int)) {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	var permute func(int)
	permute = func(k int) {
		if k == n {
			f(order)
			return
		}
		for i := k; i < n; i++ {
			order[k], order[i] = order[i], order[k]
			permute(k + 1)
			order[k], order[i] = order[i], order[k]
		}
	}
	permute(0)
}

// In every possible order of the events, first byte and preemption never both win, a rejection never truncates a
// response, and nothing is left.
func TestEveryOrder(t *testing.T) {
	seen := map[string]bool{}
	outcomes := map[string]int{}
	permutations(numEvents, func(order []int) {
		var names []string
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, nil)
			b.seeGate()
			b.controller.preempt = make(chan struct{})
			p := &proxy{gate: b.openGate(), mainOpen: true}
			p.main, p.id = b.granted()
			p.lease = b.controller.leases[0]
			// The first possible event in the order happens next. So every possible order occurs.
			for left := slices.Clone(order); ; {
				i := slices.IndexFunc(left, p.possible)
				if i < 0 {
					break
				}
				event := left[i]
				left = slices.Delete(left, i, i+1)
				names = append(names, eventNames[event])
				p.do(t, event)
			}
			p.main.end()
			p.gate.end()
			p.look(t)
			if p.preempted && p.headersReleased {
				t.Error("both have won")
			}
			if b.server.links.len() != 0 || b.counted("weir_gate_streams") != 0 || b.server.Streams() != 0 {
				t.Errorf("left: %d links, %d gate streams, %d streams", b.server.links.len(), b.counted("weir_gate_streams"), b.server.Streams())
			}
			if len(p.lease.completed) != 1 || b.controller.outcomes != 1 {
				t.Errorf("settled %d times, %d outcomes", len(p.lease.completed), b.controller.outcomes)
			}
			switch {
			case p.rejected:
				outcomes["rejected"]++
			case p.headersReleased:
				outcomes["answered"]++
			default:
				outcomes["neither"]++
			}
		})
		if t.Failed() {
			t.Fatalf("in the order %s", strings.Join(names, ", "))
		}
		seen[fmt.Sprint(names)] = true
	})
	// These are all possible orders: 7 without a preemption, 5 with a late one, each with 2 ends, and 3 in which it
	// wins.
	if want := 7*2 + 5*2 + 3; len(seen) != want {
		t.Errorf("%d different orders, want %d; the outcomes were %v", len(seen), want, outcomes)
	}
}
