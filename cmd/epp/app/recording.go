package app

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/extproc"
	"github.com/weir-epp/weir/pkg/flowcontrol"
	"github.com/weir-epp/weir/pkg/recording"
)

// Recordings is the format of this program's recordings.
func Recordings() (*recording.Format, error) { return recording.NewFormat(NewPlacer(nil)) }

// record has every decision recorded, with --record.
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

// recordedFlow is a flow's key as a recording has it with --hash-flow-keys: every one is a hash, also a model's name, which
// is told apart from an identity's, since the names in the configuration may be either.
func recordedFlow(key string) string {
	hashed := extproc.HashedFlowName(key)
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

// A reader of the recording takes it in pieces, each within a time: one that does not read must not keep the others from
// it, nor the file in memory.
const (
	recordingPiece = 1 << 20 // bytes
	pieceTimeout   = 10 * time.Second
)

// recordingPage writes the recording as a file, to one reader at a time: while it is written there is a second copy of it
// in memory.
func (a *App) recordingPage(w http.ResponseWriter, _ *http.Request) {
	if !a.readingRecording.TryLock() {
		http.Error(w, "the recording is being read by somebody else: try again", http.StatusServiceUnavailable)
		return
	}
	defer a.readingRecording.Unlock()
	a.pool.controller.Look(a.pool.recorder.Seal)
	file, err := a.pool.recorder.Bytes()
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
