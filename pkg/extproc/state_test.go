package extproc

import (
	"fmt"
	"math/bits"
	"testing"
	"testing/synctest"
	"time"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
)

// Every message in every state has a reaction, every state has a label, and every state but the first ones follows
// another one. The answers of the reactions are in testdata/messages.txt.
func TestEveryStateIsComplete(t *testing.T) {
	reached := set(fresh, foreign, preplaced, observed)
	for s := range state(numStates) {
		reached |= following[s]
		if s.String() == "" {
			t.Errorf("state %d has no label", s)
		}
		for k := range kind(numKinds) {
			if reactions[s][k] == nil {
				t.Errorf("state %d has no reaction to kind %d", s, k)
			}
		}
	}
	if n := bits.OnesCount32(reached); n != numStates {
		t.Errorf("%d of %d states are reached", n, numStates)
	}
}

// A request never comes back from an end, and from its first response byte on it cannot be rejected.
func TestStatesThatEndARequest(t *testing.T) {
	for _, s := range []state{responding, abandoned, rejected, foreign, forwarded, observed} {
		if following[s] != 0 {
			t.Errorf("state %d has a successor", s)
		}
	}
	for s := range state(numStates) {
		if s.replaceable() != (following[s]>>rejected&1 == 1) {
			t.Errorf("state %d: replaceable %v", s, s.replaceable())
		}
	}
}

// A change of state outside the table is a broken contract, which costs this one request a 500.
func TestNoOtherChangeOfState(t *testing.T) {
	st := newMainStream(newConnection(&newBench(t, nil).server.shared, &fakeStream{ctx: t.Context()}, time.Now()), chat())
	defer func() {
		if recover() == nil || st.state != fresh {
			t.Errorf("now in state %d", st.state)
		}
	}()
	st.state.enter(responding)
}

// A message read in the wrong place is contained like any other panic, and the client gets an answer.
func TestMessageWhereNoneIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		for _, s := range []state{deciding, granted} {
			stream := &fakeStream{ctx: t.Context()}
			st := newMainStream(newConnection(&b.server.shared, stream, time.Now()), chat())
			st.state = s
			run(st, chat())
			if len(stream.sent) != 1 || render(stream.sent[0]) != "immediate 500 internal" {
				t.Errorf("state %d: sent %v", s, stream.sent)
			}
		}
	})
}

// The message alone determines its kind. A later Envoy's message is of the last kind.
func TestKinds(t *testing.T) {
	for want, m := range map[kind]*extprocv3.ProcessingRequest{
		requestHeadersKind: chat(), requestBodyKind: requestBodyOf("", true), requestTrailersKind: requestTrailers(),
		responseHeadersKind: responseHeaders("200", true), responseBodyKind: responseBodyOf("", true),
		responseTrailersKind: responseTrailers(), otherKind: {},
	} {
		if got := kindOf(m); got != want {
			t.Errorf("%s: kind %d, want %d", fmt.Sprint(m), got, want)
		}
	}
}
