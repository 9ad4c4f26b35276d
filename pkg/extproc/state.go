package extproc

import "fmt"

// state is the state of a main stream. doc.go has the diagram of the states.
type state uint8

const (
	fresh           state = iota // a request; its headers are the next message
	arriving                     // its body is still arriving
	deciding                     // it is complete: it is being read or offered, or waits in the queue
	granted                      // it was admitted; its destination is not yet sent
	placed                       // its destination was sent
	placedNoHeaders              // the same, and Envoy skips the response headers
	holding                      // response headers came, and wait for the first token (FULL_DUPLEX_STREAMED)
	responding                   // the response headers went on to the client: the response is never cut from here on
	abandoned                    // Envoy responded to the client itself while the body was still arriving
	rejected                     // the last message was sent
	foreign                      // not a request: a response made by Envoy itself
	preplaced                    // an earlier filter placed the request; its headers are the next message
	forwarded                    // the reply to its headers was sent
	observed                     // observability mode: no replies
	numStates       = iota
)

// stateLabels are the values of the label "state" in metrics, and of the key "state" in the log.
var stateLabels = [numStates]string{
	fresh: "fresh", arriving: "collecting", deciding: "collecting", granted: "collecting", placed: "placed",
	placedNoHeaders: "placed", holding: "gated", responding: "responding", abandoned: "responding", rejected: "rejected",
	foreign: "foreign", preplaced: "foreign", forwarded: "foreign", observed: "observed",
}

// String returns the label of the state in metrics, which several states share.
func (s state) String() string { return stateLabels[s] }

// following has, for each state, a bit for each permitted next state.
var following = [numStates]uint32{
	fresh:           set(deciding, rejected),
	arriving:        set(deciding, abandoned, rejected),
	deciding:        set(arriving, granted, rejected),
	granted:         set(placed, placedNoHeaders, rejected),
	placed:          set(holding, responding, rejected),
	placedNoHeaders: set(responding, rejected),
	holding:         set(responding, rejected),
	preplaced:       set(forwarded),
}

func set(states ...state) (bits uint32) {
	for _, s := range states {
		bits |= 1 << s
	}
	return bits
}

// enter changes the state. It panics if the next state is not permitted.
func (s *state) enter(next state) {
	if following[*s]>>next&1 == 0 {
		panic(fmt.Sprintf("extproc: state %d after state %d", next, *s))
	}
	*s = next
}

// replaceable reports whether a rejection can still replace the response, because no part of it has gone to the client.
func (s state) replaceable() bool {
	return set(fresh, arriving, deciding, granted, placed, placedNoHeaders, holding)>>s&1 == 1
}
