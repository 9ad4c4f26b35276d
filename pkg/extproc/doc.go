// Package extproc speaks Envoy's external processing protocol: one gRPC stream for each HTTP request. It reads what
// a request says of itself, asks the controller to admit it, holds it until it may go, names its destination to
// Envoy, and watches the stream until the answer has ended.
//
// # What it owns
//
// The stream protocol in every mode that Envoy may be configured with, the reading of headers and bodies, the model
// to target resolution and its rewrite, the identity of a request (flow, tenant, tier), the subset hint, the table
// of statuses and the bodies of rejections, the size limits, and the observation of the answer.
//
// # What it must never know
//
// How the queue orders, what the stock is, where endpoints come from: no queue algorithm, no Kubernetes, no
// scraping. To it a placement is an interface and an endpoint is a string to send.
//
// # The states of a stream
//
//	            response headers first
//	  fresh ───────────────────────────────► foreign   (Envoy's own answer: answered empty, nothing admitted)
//	    │ ├─ its destination is known ─────► foreign   (an earlier filter has placed it: placedbefore.go)
//	    │ ├─ and they may wait ────────────► gate      (a first-token gate's stream, see below)
//	    │ └─ observability mode ───────────► observed  (never answered, nothing admitted)
//	    │ request headers
//	    ├─ more is needed ──► collecting   body messages, trailers, the end of the stream are taken in
//	    │                         │ the body is whole (or enough of it)
//	    ▼                         ▼
//	 admission: TryEnqueue or PassOn, in the handler's goroutine
//	    │ granted                       │ rejected
//	    ▼                               ▼
//	  placed ── preempted ───────────► finished  (ImmediateResponse: the last message)
//	    │ response headers              ▲
//	    ├─ FULL_DUPLEX ► gated ─────────┤ preempted
//	    ▼                │ first token, trailers, end
//	responding ◄─────────┘
//	    │ the stream ends, whatever Recv says
//	    ▼
//	 the lease is settled, once
//
// Every message has a defined answer in every state: see transition.go. One that makes no sense there is answered
// empty where Envoy waits for an answer, counted, and changes nothing.
//
// # The first-token gate
//
// Engines send the headers of a streamed answer at once, however long the request then waits inside, and after the
// headers went on to the client a request cannot be preempted cleanly. So a second ext_proc filter, between the main one
// and the router and served by the same Server, holds them (gate.go; config/envoy/gate.yaml):
//
//	answer ──► headers: held ──► comments, early events: held, unanswered, in order
//	                               │ the first token, the end, or too much to hold
//	                               ▼
//	              the lease is asked: OnFirstByte
//	     first byte │                    │ preempted
//	                ▼                    ▼
//	    headers and what was held     nothing: the main stream's ImmediateResponse ends this stream (and if it does not
//	    are answered, and the         come within 2 s, because the main stream was lost, the same is sent from here)
//	    stream ends with OK: all
//	    later chunks cost no message
//
// The main filter sees the response headers only then, asks the lease again and gets the same answer. If the gate's
// stream is cut, times out or was never opened, the headers go on and the main stream decides by itself. In
// FULL_DUPLEX_STREAMED the main stream sees the token itself and is its own gate (the state gated).
//
// A gate's stream finds its request by a name of 128 random bits that the main filter's answer sets in dynamic metadata
// (tie.go). One without a name, as a rejection's, or with an unknown one is answered at once. Whoever can be preempted
// has a name; for the others it is seen, not configured, whether there is a gate at all (presence.go). Once the gate has become a habit, a request that can never be preempted has
// the main filter's response headers skipped: its status comes by the gate.
//
// What is not held: answers that announce trailers, and gRPC's, because Envoy keeps trailers back while the headers
// wait. Several replicas of Weir behind one cluster: a gate's stream that comes to another replica than its request's is
// unknown there (weir_gate_unknown_total), and its answer is not held.
//
// # Where a request waits, by the mode of its request body
//
//	BUFFERED              in the header phase when the headers say enough (the body is overridden to NONE and never
//	                      sent), else in the body phase: headers answered at once, destination in the body's answer
//	BUFFERED_PARTIAL      the same; a body of which only a part comes says nothing
//	NONE, STREAMED        in the header phase, with what the headers say: the destination has to be in the headers'
//	                      answer, and no chunk comes before it
//	FULL_DUPLEX_STREAMED  after the whole body was collected; then headers and body are answered together
//
// # Goroutines
//
// A stream is served by its handler's goroutine, which owns the state and sends. While it receives a body that it awaits
// it lets go of both, so that the request can be turned away when it is late or its memory is needed (collect.go). A
// second one, which only receives, is started when the first one has something else to wait for: the queue, or a
// preemption. An uncontended request that cannot be preempted has one goroutine. What the second one takes in meanwhile
// is bounded (inbox.go), and beyond that gRPC holds Envoy back.
//
// # Invariants
//
//   - A stream that asks for admission ends in exactly one outcome: a lease that is settled once, a rejection by
//     TryEnqueue or PassOn, or one Refuse.
//   - An ImmediateResponse is the last message.
//   - After the answer to the response headers nothing is ever cut.
//   - First byte and preemption are decided by the lease, once, whichever stream asks: a gate that has lost never lets
//     the answer through, and a main stream whose gate has won never rejects.
//   - There is a tie for each request in flight that was given a name, and none when its main stream has ended.
//   - No destination that a client named goes on to the upstream, also for requests that are not placed.
//   - The bytes of bodies held are bounded for each request and in total, a body has to be whole in time, and all is given
//     back at the stream's end. In
//     the BUFFERED modes Envoy holds the body, so here it is dropped after the scan, unless it is to be rewritten.
//   - A stream ends with OK whatever happened: to Envoy an error is a failed processor.
//
// Tests: the state machine by scripts (stream_test.go), the gate in every order of events (gateorder_test.go), each defect of peers by its name (defects_test.go), and
// fuzzing of the body scan, the usage reader, the subset forms and of message sequences.
package extproc
