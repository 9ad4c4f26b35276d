package app

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/weir-epp/weir/internal/placement"
	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/flowcontrol"
	"github.com/weir-epp/weir/pkg/recording"
	"github.com/weir-epp/weir/pkg/request"
)

// Recordings returns the format of this program's recordings.
func Recordings() (*recording.Format, error) { return recording.NewFormat(placement.On(nil)) }

// record starts recording every decision, with --record.
func (p *Pool) record(o *Options) error {
	if o.Record == 0 {
		return nil
	}
	format, err := Recordings()
	if err != nil {
		return fmt.Errorf("app: %w", err)
	}
	var hide func(string) string
	if o.HashFlowKeys {
		hide = recordedFlow
	}
	return p.controller.Record(func(m *dispatch.Machine, cfg dispatch.Config) (flowcontrol.Recorder, error) {
		p.recorder, err = format.Record(m, p.board, cfg, o.Record<<20, time.Now(), hide)
		return p.recorder, err
	})
}

// recordedFlow returns the form in which a recording has a flow's key with --hash-flow-keys: a hash, even of a model's name,
// since the keys in the configuration may be either. Hashes of models and of identities differ.
func recordedFlow(key string) string {
	hashed := request.HashedFlowName(key)
	if hashed == key {
		return key
	}
	return "name-" + hashed
}

// keepRecording keeps the recording at its size until ctx is over.
func (p *Pool) keepRecording(ctx context.Context) {
	if err := p.recorder.Run(ctx); err != nil {
		p.log.Error(err, "the recording has ended; requests are served as before")
	}
}

// The recording is written to its reader in pieces, each with a deadline, so that a reader that does not read keeps neither
// other readers waiting nor the file in memory.
const (
	recordingPiece = 1 << 20 // bytes
	pieceTimeout   = 10 * time.Second
)

// recordingRest is the pause after a copy of the recording was made, as a multiple of the time that making it took. The
// follower stands still meanwhile, so that this bounds the part of the time that it loses to readers.
const recordingRest = 9

// recordingReading is the state of the readers of the recording.
type recordingReading struct {
	sync.Mutex           // held by the reader
	rests      time.Time // when the pause after the last copy ends
}

// noRecordingPage answers in an epp that records nothing.
func noRecordingPage(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, "nothing is recorded: start epp with --record=16, which keeps the last 16 MiB of decisions", http.StatusNotFound)
}

// recordingPage writes the recording as a file. It has one reader at a time, because a copy of the recording is in memory
// meanwhile, and it waits until the pause after the last copy is over.
func (a *App) recordingPage(w http.ResponseWriter, r *http.Request) {
	if !a.reading.TryLock() {
		http.Error(w, "another reader has the recording: try again", http.StatusServiceUnavailable)
		return
	}
	defer a.reading.Unlock()
	select {
	case <-time.After(time.Until(a.reading.rests)):
	case <-r.Context().Done():
		return
	}
	begun := time.Now()
	a.pool.controller.Look(a.pool.recorder.Seal)
	file, err := a.pool.recorder.Bytes()
	a.reading.rests = time.Now().Add(recordingRest * time.Since(begun))
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
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
			return // the reader is gone, or does not read
		}
	}
}
