// Package extproc speaks Envoy's external processing protocol, with one gRPC stream for each HTTP request. It reads the
// request, asks the controller to admit it, holds it until it is granted, tells Envoy its destination, and watches the
// response to its end.
//
// The package owns the stream protocol in every mode that Envoy can be configured with, the collection of bodies and
// their memory, and the statuses and bodies of rejections. Package request reads requests. The package does not know
// the order of the queue, the stock, or the origin of endpoints: it sees a placement as an interface and an endpoint as
// a string to send.
//
// Three words: Envoy sends messages, Weir answers each message with a reply, and the model server sends the response to
// the client.
//
// # Where to read
//
// A request passes through these files, in this order:
//
//	server.go          Process receives the first message, and makes the machine: a request's main stream, or its gate
//	firstmessage.go    by that message
//	stream.go          the main stream: its request, body, grant, link, response, line, record and trace, each of a type of
//	                   its own
//	reactions.go       its reaction to every message in every state (state.go)
//	readrequest.go     the request is read, by package request (collectbody.go: messages with its body fill bodybuffer.go;
//	                   too large is refused by request/limits.go, and a first part that Envoy sends is passed on unread by
//	                   request/readbody.go)
//	admission.go       and offered to the controller, in the handler's goroutine (grant.go, or refuse.go), with its cost,
//	                   class and prompt (cost.go, classify.go, affinity.go)
//	answerrequest.go   Envoy is told the destination (replies.go: the shared and the own part of a reply)
//	watchresponse.go   the response is watched (firstbyte.go, responsebody.go: its body, where Envoy shows it)
//	end.go             and the lease is settled, when the stream ends (cost.go), and others are told (tellend.go: the log,
//	                   the tail, the tracer, and the sink of decision records)
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
// placedNoHeaders is placed without response headers, see below. A stream may end in any state; its end settles the
// lease, and gives an outcome to a request without one. A message that makes no sense in a state is counted, and
// acknowledged if Envoy waits for a reply; it changes nothing.
//
// # Where a request waits, by request body mode
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
// Engines send the headers of a streamed response at once, even if the request then waits inside. Once the client has
// the headers, the request cannot be preempted cleanly. So a second ext_proc filter, between the main one and the
// router and served by the same Server, holds the headers (config/envoy/gate.yaml):
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
// The main filter sees the response headers only after the gate's release; it asks the lease again and gets the same
// verdict. If the gate's stream is cut, times out or was never opened, the headers go on and the main stream decides
// alone. In FULL_DUPLEX_STREAMED the main stream sees the token itself and is its own gate (state holding).
//
// A gate finds its request by an ID of 128 random bits, which the main stream's reply sets in dynamic metadata. A
// response without an ID, or with an unknown one, is released at once. Every preemptible request has an ID; other
// requests have one while a gate seems to be present (presence.go). Once every response comes through a gate, the main
// filter skips the response headers of requests that can never be preempted: their status comes through the gate.
//
// The gate does not hold responses that announce trailers, or gRPC responses, because Envoy keeps trailers back while
// the headers wait. With several replicas of Weir, a gate's stream may reach a replica that does not know the ID: the
// response is counted in weir_gate_unknown_total and not held.
//
// # Goroutines
//
// The handler's goroutine serves the stream: it owns the machine and sends. While it receives a body, it gives up both,
// so that the request can be expelled if the body is late or its memory is needed (turn.go). A second goroutine, which
// only receives, starts when the first one waits for something else: the queue, or a preemption. So an uncontended
// request that cannot be preempted has one goroutine. The second goroutine holds a bounded number of messages
// (inbox.go); beyond that gRPC holds Envoy back.
//
// # Invariants
//
//   - A request that has been read has exactly one outcome: a lease settled once, a rejection by TryEnqueue or PassOn,
//     or one Refuse.
//   - An ImmediateResponse is the last message.
//   - After the reply to the response headers, a response is never cut.
//   - The lease decides once between first byte and preemption, for both streams: a gate that lost never releases the
//     response, and a main stream whose gate won never rejects.
//   - Each request in flight with an ID has a link, until the end of its main stream.
//   - A destination named by a client never reaches the model server, even if the request is not placed.
//   - Held body bytes are bounded for each request and in total, a body has to be complete in time, and the end of the
//     stream releases all of it. In the BUFFERED modes Envoy holds the body, so Weir drops it after the scan, unless it
//     will be rewritten.
//   - A stream always ends with OK, because Envoy takes an error as a failed processor.
//
// Tests: every message in every state (everymessage_test.go), a request's life in each mode (stream_test.go), the gate
// in every order of events (gateorder_test.go), peers' defects by name (defects_test.go), and fuzzing of message
// sequences, bodies, usage and subset hints.
package extproc
