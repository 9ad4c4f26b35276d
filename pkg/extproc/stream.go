package extproc

import (
	"context"
	"errors"
	"sync"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"

	"github.com/weir-epp/weir/pkg/extproc/usage"
	"github.com/weir-epp/weir/pkg/flowcontrol"
)

// state is where a stream stands; doc.go draws them.
type state uint8

const (
	fresh      state = iota // nothing received
	collecting              // the request's headers are known, more is needed
	placed                  // the request was answered
	gated                   // response headers received, their answer is held until the first body byte
	responding              // response headers were answered
	foreign                 // not a request of ours: answered empty
	observed                // observability mode: never answered
	atGate                  // a first-token gate's stream, see gate.go
)

// String is the label of metrics.
func (s state) String() string {
	return [...]string{"fresh", "collecting", "placed", "gated", "responding", "foreign", "observed", "gate"}[s]
}

// stream is one HTTP request. It belongs to its handler's goroutine, but while that awaits more of a body: see collect.go.
type stream struct {
	server *Server
	cfg    *compiled
	conn   extprocv3.ExternalProcessor_ProcessServer
	begun  time.Time
	reader reader
	state  state
	modes  modes

	// turn is locked by whoever the stream belongs to, from the time that its body is awaited until it no longer is.
	turn       sync.Mutex
	awaitsBody bool // guarded by turn

	// What the request says.
	headers      headers
	placedBefore bool // placed by an earlier filter: see placedbefore.go
	api          api
	identity     identity
	subset       Subset
	class        classHint
	body         requestBody
	arrival      *arrival // of the body; nil: none was awaited
	model        string
	target       string
	wantsBody    bool
	passes       bool   // it is known to be no inference, and does not queue
	flow         string // its key, once it is known
	rank         int    // of its tier
	tierKnown    bool   // rank is

	// asked says that the request asks for admission, decided that its outcome is known.
	asked, decided bool
	placement      Placement
	queued         time.Time // when it was offered and had to wait; zero: it never waited
	lease          Lease
	picked         string // the destination's first endpoint
	elsewhere      string // the endpoint that has served, if it is another
	rejection      *flowcontrol.Rejection
	preempted      <-chan struct{}
	// headersAnswered says that Envoy has its answer to the request headers, skipsHeaders that it was told to keep the
	// response headers to itself.
	headersAnswered, skipsHeaders bool
	// tie leads the gate to this request; nil: no gate is known, or none is needed.
	tie *tie
	// gate is this stream as a gate's own; nil in a request's.
	gate *gate

	// What the answer says.
	status       int
	eventStream  bool
	lastAnswered time.Time
	usage        *usage.Reader
	early        *early // while gated

	line *requestLine // in the log; nil: it has none
}

// errFinished ends a stream after its last message.
var errFinished = errors.New("extproc: the last message was sent")

// serve runs one stream to its end. The end is OK whatever ended it: to Envoy an error would be a failed processor.
func (s *Server) serve(conn extprocv3.ExternalProcessor_ProcessServer) (err error) {
	st := &stream{server: s, cfg: s.config.Load(), conn: conn, begun: time.Now()}
	st.reader.init(conn)
	s.plateau.enter()
	defer st.end()
	defer func() {
		if p := recover(); p != nil {
			st.panicked(p)
		}
	}()
	for {
		m, err := st.next()
		if err == nil {
			err = st.on(m)
		}
		if err != nil {
			return nil
		}
	}
}

// next is the next message. It returns errFinished after a preemption was answered.
func (st *stream) next() (*extprocv3.ProcessingRequest, error) {
	if !st.reader.running() {
		if st.awaitsBody {
			return st.nextOfBody()
		}
		return st.conn.Recv()
	}
	for {
		if m := st.reader.inbox.get(); m != nil {
			return m, nil
		}
		select {
		case <-st.reader.inbox.ready:
		case <-st.preempted:
			return nil, st.rejectPreempted(st.lease.OnFirstByte())
		case <-st.reader.gone:
			if m := st.reader.inbox.get(); m != nil { // what came before the end goes first
				return m, nil
			}
			return nil, context.Canceled
		}
	}
}

// startReader lets this goroutine wait for something else than the next message.
func (st *stream) startReader() {
	st.reader.start(&st.server.memory, st.cfg.Limits.MaxBodyBytesTotal)
}

// send sends one message. An error is the end of the stream.
func (st *stream) send(r *extprocv3.ProcessingResponse) error { return st.conn.Send(r) }

// reject answers with an ImmediateResponse, which is the last message.
func (st *stream) reject(rej *flowcontrol.Rejection) error {
	st.decided = true
	if st.tie != nil {
		st.tie.over.Store(true) // before Envoy can bring the rejection to the gate
	}
	st.turnedAway(rej)
	if rej.Outcome == flowcontrol.OutcomeClientCancelled {
		return errFinished // nobody is there to read it
	}
	told := st.ofWhose(rej)
	var further []*corev3.HeaderValueOption
	if st.wantsQueueState() {
		waited, _ := st.waited()
		further = st.queueState(waited)
	}
	if err := st.send(st.explained(st.cfg.rejections.answer(told, st.errorShape(), further...), rej)); err != nil {
		return err
	}
	return errFinished
}

// refuse rejects a request that was not offered to the controller.
func (st *stream) refuse(err error) error {
	return st.reject(st.refusal(err))
}

// refusal counts a request that was not offered to the controller, under the labels of its model.
func (st *stream) refusal(err error) *flowcontrol.Rejection {
	model, target := st.labels()
	return st.server.controller.Refuse(st.flowSaid(), model, target, err)
}

// errorShape is the API whose errors the client understands.
func (st *stream) errorShape() api {
	if st.api == noAPI {
		return apiOfPath(st.headers.values[slotPath])
	}
	return st.api
}
