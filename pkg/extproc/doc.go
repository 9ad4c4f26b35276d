// Package extproc speaks Envoy's external processing protocol, with one gRPC stream for each HTTP request. It reads the
// request, asks the controller to admit it, holds it until it is granted, tells Envoy its destination, and watches the
// response to its end.
//
// The package owns the stream protocol in every mode that Envoy may be configured with, the collecting of bodies and
// their memory, and the statuses and bodies of rejections. Package request reads requests. The package
// does not know the order of the queue, the stock, or the origin of endpoints: to it a placement is an interface
// and an endpoint is a string to send.
//
// Three words: Envoy sends messages, Weir answers each of them with a reply, and the model server's answer to the client
// is the response.
//
// # Where to read
//
// A request passes through these files, in this order:
//
//	server.go          Process receives the first message, and makes the machine: a request's main stream, or its gate
//	firstmessage.go    by that message
//	stream.go          the main stream: its request, body, grant, link and response, each of a type of its own
//	reactions.go       its reaction to every message in every state (state.go)
//	readrequest.go     the request is read, by package request (collectbody.go: messages with its body fill bodybuffer.go;
//	                   too large is refused by request/limits.go, and a first part that Envoy sends is passed on unread by
//	                   request/readbody.go)
//	admission.go       and offered to the controller, in the handler's goroutine (grant.go, or refuse.go)
//	answerrequest.go   Envoy is told the destination (replies.go: the shared and the own part of a reply)
//	watchresponse.go   the response is watched (firstbyte.go, responsebody.go: its body, where Envoy shows it)
//	end.go             and the lease is settled, when the stream ends (cost.go)
//
// connection.go is under both machines, and shared.go has the parts that all streams share. gate.go is the other
// machine, and link.go has their common knowledge.
//
// # The states of a main stream
//
//	request headers        response headers   destination known     observability mode
//	      │                       │                   │                     │
//	    fresh                  foreign            preplaced              observed
//	      │                  (acknowledged)           │                 (unanswered)
//	      ▼                                           ▼
//	   deciding ─── more is needed ──► arriving   forwarded
//	    │  ▲  │                         │    │
//	    │  │  │ rejected    whole body  │    │ Envoy responds itself
//	    │  └──┼─────────────────────────┘    └──► abandoned
//	    ▼     │
//	 granted  │
//	    │     │
//	    ▼     ▼
//	  placed ─── preempted ──► rejected (an ImmediateResponse is the last message)
//	    │ response headers       ▲
//	    ├─ FULL_DUPLEX ► holding ┤ preempted
//	    ▼                  │ first token, trailers, end
//	responding ◄───────────┘
//
// placedNoHeaders is placed without response headers, see below. A stream may end in any state; then the lease is
// settled, and a request without an outcome gets one. A message that makes no sense in a state is acknowledged if Envoy
// waits for an answer, and counted; it changes nothing.
//
// # Where a request waits, by the mode of its request body
//
//	BUFFERED              in the header phase if the headers say enough: the body is overridden to NONE and never sent.
//	                      Otherwise in the body phase: the headers are answered at once, the body with the destination
//	BUFFERED_PARTIAL      the same, but if only a part of the body comes, it is not read
//	NONE, STREAMED        in the header phase, with the headers alone: the destination has to be in the answer to
//	                      the headers, and no chunk comes before it
//	FULL_DUPLEX_STREAMED  when the whole body is collected; then headers and body are answered together
//
// # The first-token gate
//
// Engines send the headers of a streamed response at once, however long the request then waits inside, and once the
// headers have gone to the client the request cannot be preempted cleanly. So a second ext_proc filter between the main
// one and the router, served by the same Server, holds them (config/envoy/gate.yaml):
//
//	response ──► headers: held ──► comments, early events: held, unanswered, in order
//	                               │ the first token, the end, or too much to hold
//	                               ▼
//	             the lease is asked: OnFirstByte
//	    first byte │                    │ preempted
//	               ▼                    ▼
//	   everything held is answered,   nothing is: the main stream's ImmediateResponse ends this stream. If the main
//	   and the stream ends with OK:   stream was lost and none comes within 2 s, the gate sends it
//	   later chunks cost no message
//
// Only then does the main filter see the response headers; it asks the lease again and gets the same verdict. If the
// gate's stream is cut, times out or was never opened, the headers go on and the main stream decides by itself. In
// FULL_DUPLEX_STREAMED the main stream sees the token itself and is its own gate: the state holding.
//
// A gate finds its request by an ID of 128 random bits, which the answer to the main filter sets in dynamic metadata. A
// response without an ID, or with an unknown one, is released at once. Every request that can be preempted has an ID. The
// others have one while there seems to be a gate (presence.go). Once every response comes through a gate, requests that
// can never be preempted have the main filter's response headers skipped: their status comes through the gate.
//
// The gate does not hold responses that announce trailers, nor gRPC's, because Envoy keeps trailers back while the
// headers wait. Behind several replicas of Weir a gate's stream may reach another replica than its request's, where the
// ID is unknown: it is counted in weir_gate_unknown_total and not held.
//
// # Goroutines
//
// A stream is served by its handler's goroutine, which owns the machine and sends. While it receives a body that it
// awaits, it gives both away, so that the request can be expelled if it is late or its memory is needed (turn.go).
// A second goroutine, which only receives, starts when the first one has something else to wait for: the queue, or a
// preemption. So an uncontended request that cannot be preempted has one goroutine. Messages that the second one receives
// meanwhile are bounded (inbox.go); beyond that gRPC holds Envoy back.
//
// # Invariants
//
//   - A request that is read ends in exactly one outcome: a lease that is settled once, a rejection by TryEnqueue or
//     PassOn, or one Refuse.
//   - An ImmediateResponse is the last message.
//   - Once the response headers were answered, a response is never cut.
//   - The lease decides between first byte and preemption, once, whichever stream asks: a gate that lost never releases
//     the response, and a main stream whose gate won never rejects.
//   - There is a link for each request in flight that has an ID, and none after the end of its main stream.
//   - No destination named by a client reaches the model server, even if the request is not placed.
//   - The bytes of bodies that are held are bounded for each request and in total, a body has to be whole in time, and
//     all of it is released at the end of the stream. In the BUFFERED modes Envoy holds the body, so it is dropped here
//     after the scan, unless it is to be rewritten.
//   - A stream ends with OK whatever happened, because to Envoy an error is a failed processor.
//
// Tests: every message in every state (everymessage_test.go), the way of a request in each mode (stream_test.go), the
// gate in every order of events (gateorder_test.go), peers' defects by name (defects_test.go), and fuzzing of sequences
// of messages, of bodies, of usage and of subset hints.
package extproc
