package extproc

import extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"

// While a body is awaited, its stream can be turned away from outside: the account's timer finds it late, or another
// body needs its memory. Its handler stands in Recv then, which nothing interrupts but Envoy, and a second goroutine that
// only receives would be one for each request, most of which are whole at once. So it is the other way round: the
// handler lets go of the stream while it receives, and who turns the request away (expel, in a goroutine of its own, and
// only for a request that is turned away) takes it over and sends the last message. turn says whose the stream is.
// Envoy then ends the stream, and with it Recv.

// awaitBody begins to await the body.
func (st *stream) awaitBody() {
	announced := int64(0)
	if st.modes.request != modeFullDuplex { // nothing shows before the last byte
		announced = min(max(st.headers.contentLength(), 0), st.cfg.Limits.MaxBodyBytes)
	}
	st.turn.Lock()
	st.awaitsBody = true
	st.arrival = &arrival{stream: st}
	st.server.memory.expect(st.arrival, st.identity.tenant, st.begun, st.cfg.Limits.BodyTimeout, announced)
}

// nextOfBody is the next message while the body is awaited. It returns errFinished if the request was turned away
// meanwhile.
func (st *stream) nextOfBody() (*extprocv3.ProcessingRequest, error) {
	m, err := st.receiveAlone()
	if !st.awaitsBody {
		st.turn.Unlock()
		return nil, errFinished
	}
	return m, err
}

func (st *stream) receiveAlone() (*extprocv3.ProcessingRequest, error) {
	st.turn.Unlock()
	defer st.turn.Lock()
	return st.conn.Recv()
}

// collect takes in a part of the body; last says that nothing more is awaited. An error is what the request is to be
// turned away with.
func (st *stream) collect(part []byte, last bool) error {
	err := st.body.add(part, last, st.headers.contentLength(), &st.cfg.Limits, &st.server.memory, st.arrival)
	if err != nil || last {
		st.stopAwaiting()
	}
	if err != nil {
		st.dropBody()
	}
	return err
}

// stopAwaiting keeps the stream for its handler. Who comes to turn the request away finds that it is late.
func (st *stream) stopAwaiting() {
	if st.awaitsBody {
		st.awaitsBody = false
		st.turn.Unlock()
	}
}

// dropBody gives the body's memory back.
func (st *stream) dropBody() {
	if st.arrival != nil {
		st.server.memory.release(st.arrival)
		st.body.bytes, st.body.charged = nil, 0
	}
}

// expel turns the request away because of its body, unless its handler knows by now: it is told by the account too.
func (st *stream) expel(err error) {
	st.turn.Lock()
	defer st.turn.Unlock()
	if !st.awaitsBody {
		return
	}
	st.awaitsBody = false
	defer func() {
		if p := recover(); p != nil {
			st.reportPanic(p, "turning a request away")
		}
	}()
	st.body.bytes = nil
	_ = st.refuse(err) // an error is the end of the stream
}
