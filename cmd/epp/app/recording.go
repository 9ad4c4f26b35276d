package app

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-epp/weir/internal/config"
	"github.com/weir-epp/weir/internal/placement"
	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/flowcontrol"
	"github.com/weir-epp/weir/pkg/recording"
	"github.com/weir-epp/weir/pkg/request"
)

// Recordings returns the format of this program's recordings.
func Recordings() (*recording.Format, error) { return recording.NewFormat(placement.On(nil)) }

// RecordedConfig returns the machine's part of a configuration in a recording's form: hashed, if its epp has
// --hash-flow-keys.
func RecordedConfig(d *config.Document, hashed bool) dispatch.Config {
	flow, streams := d.FlowcontrolConfig(), d.ExtprocConfig()
	if !hashed {
		return flow.Config
	}
	withHashedFlows(&flow, &streams)
	return recording.HiddenConfig(flow.Config, recordedFlow)
}

// recordings is the recording of a pool's decisions, which a reload may end, and begin again.
type recordings struct {
	// Immutable.
	readable bool                // there is a page to read it
	hide     func(string) string // as in recording.Format.New
	begun    chan struct{}       // has an element after a recording has begun

	now atomic.Pointer[recording.Recorder] // nil: none
}

// record begins to record every decision, if the configuration says so.
func (p *Pool) record(o *Options, cfg recording.Config) error {
	window := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "weir_recording_window_seconds",
		Help: "How far back the recording of decisions at /debug/recording reaches; 0: there is none.",
	}, func() float64 { return p.recording.now.Load().Window(time.Now()).Seconds() })
	if err := register(p.registerer, window); err != nil {
		return err
	}
	p.recording.readable, p.recording.begun = o.DebugPort != DebugOff, make(chan struct{}, 1)
	if o.HashFlowKeys {
		p.recording.hide = recordedFlow
	}
	_, err := p.beginRecording(cfg)
	return err
}

// beginRecording begins a recording of this size, unless it is 0 or nobody could read it. Decisions paused meanwhile.
func (p *Pool) beginRecording(cfg recording.Config) (paused time.Duration, err error) {
	if cfg.MiB == 0 || !p.recording.readable {
		return 0, nil
	}
	format, err := Recordings()
	if err != nil {
		return 0, fmt.Errorf("app: %w", err)
	}
	p.mu.Lock()
	flow := p.flow.Config
	p.mu.Unlock()
	recorder, err := format.New(flow, cfg.Bytes(), p.recording.hide)
	if err != nil {
		return 0, fmt.Errorf("app: %w", err)
	}
	err = p.controller.Record(func(
		m *dispatch.Machine, queue dispatch.Config, live iter.Seq2[*dispatch.Waiter, string],
	) (flowcontrol.Recorder, error) {
		now := time.Now()
		defer func() { paused = time.Since(now) }()
		return recorder, recorder.Begin(now, m, p.board, queue, live)
	})
	if err != nil {
		return 0, fmt.Errorf("app: %w", err)
	}
	p.recording.now.Store(recorder)
	select {
	case p.recording.begun <- struct{}{}:
	default:
	}
	return paused, nil
}

// resizeRecording applies a changed size of the recording, which ends it or begins it, if need be.
func (p *Pool) resizeRecording(cfg recording.Config) error {
	recorder := p.recording.now.Load()
	if cfg.MiB > 0 && recorder != nil && !recorder.Lost() {
		recorder.Resize(cfg.Bytes())
		return nil
	}
	if recorder != nil {
		p.recording.now.Store(nil)
		p.controller.StopRecording()
		recorder.End()
	}
	paused, err := p.beginRecording(cfg)
	if p.recording.now.Load() != nil {
		p.log.Info("the recording of decisions begins", "MiB", cfg.MiB, "paused", paused.String())
	}
	return err
}

// recordedFlow returns a flow's key in a recording with --hash-flow-keys: a hash, even of a model's name, since keys in
// the configuration may be identities or models. Hashes of models and of identities differ.
func recordedFlow(key string) string {
	hashed := request.HashedFlowName(key)
	if hashed == key {
		return key
	}
	return "name-" + hashed
}

// RecordedFlows returns the possible keys of a flow in a recording, with or without --hash-flow-keys.
func RecordedFlows(key string) []string {
	return []string{key, request.HashedFlowName(key), recordedFlow(key)}
}

// keepRecordings keeps each recording at its size until ctx is over.
func (p *Pool) keepRecordings(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.recording.begun:
		}
		if recorder := p.recording.now.Load(); recorder != nil {
			if err := recorder.Run(ctx); err != nil {
				p.log.Error(err, "the recording has ended; requests are served as before")
			}
		}
	}
}

// The recording is written to its reader in pieces, each with a deadline, so that a stalled reader neither blocks other
// readers nor keeps the file in memory.
const (
	recordingPiece = 1 << 20 // bytes
	pieceTimeout   = 10 * time.Second
)

// recordingRest is the pause after making a copy of the recording, as a multiple of the time that it took. The follower
// stops during a copy, so the pause bounds the part of its time lost to readers.
const recordingRest = 9

// mostCopies is the number of readers of the recording, each with a copy of it in memory.
const mostCopies = 2

// recordingReading is the state of the readers of the recording.
type recordingReading struct {
	readers    atomic.Int32
	sync.Mutex           // held while the pause lasts and the copy is made
	rests      time.Time // when the pause after the last copy ends
}

// noRecording is the answer of an epp without a recording.
const noRecording = "nothing is recorded, since recording is 0: set recording: 16 in the configuration, which counts at once, or " +
	"--record=16 at the start, to keep the last 16 MiB of decisions"

// recordingPage writes the recording as a file, for at most mostCopies readers at a time.
func (a *App) recordingPage(w http.ResponseWriter, r *http.Request) {
	defer a.reading.readers.Add(-1)
	if a.reading.readers.Add(1) > mostCopies {
		tryAgain(w, fmt.Sprintf("%d others read the recording", mostCopies))
		return
	}
	file, err := a.recordingCopy(r.Context())
	switch {
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	case file == nil:
		http.Error(w, noRecording, http.StatusNotFound)
		return
	}
	name := "weir-" + strings.NewReplacer(":", "", "-", "").Replace(time.Now().UTC().Format(time.RFC3339)) + ".recording"
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Length", strconv.Itoa(len(file)))
	w.Header().Set("Content-Disposition", `attachment; filename="`+name+`"`)
	deadline := http.NewResponseController(w)
	for piece := range slices.Chunk(file, recordingPiece) {
		if err := deadline.SetWriteDeadline(time.Now().Add(pieceTimeout)); err != nil {
			panic(err) // the server's own writer has deadlines
		}
		if _, err := w.Write(piece); err != nil {
			return // the reader is gone or stalled
		}
	}
}

// recordingCopy waits until the pause after the last copy is over, and returns a copy of the recording; nil: there is none.
func (a *App) recordingCopy(ctx context.Context) ([]byte, error) {
	if a.pool.recording.now.Load() == nil {
		return nil, nil
	}
	a.reading.Lock()
	defer a.reading.Unlock()
	select {
	case <-time.After(time.Until(a.reading.rests)):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	recorder := a.pool.recording.now.Load()
	if recorder == nil { // it ended meanwhile
		return nil, nil
	}
	begun := time.Now()
	defer func() { a.reading.rests = time.Now().Add(recordingRest * time.Since(begun)) }()
	a.pool.controller.Look(recorder.Seal)
	return recorder.Bytes()
}
