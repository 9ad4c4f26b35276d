package app

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/extproc"
	"github.com/weir-epp/weir/pkg/flowcontrol"
	"github.com/weir-epp/weir/pkg/recording"
	"github.com/weir-epp/weir/pkg/scheduling"
)

// Recordings is the format of this program's recordings.
func Recordings() (*recording.Format, error) { return recording.NewFormat(NewPlacer(nil)) }

// record has every decision recorded, with --record.
func (a *App) record(board *scheduling.Board) error {
	if a.options.Record == 0 {
		return nil
	}
	format, err := Recordings()
	if err != nil {
		return fmt.Errorf("app: %w", err)
	}
	var hide func(string) string
	if a.options.HashFlowKeys {
		hide = recordedFlow
	}
	return a.controller.Record(func(m *dispatch.Machine, cfg dispatch.Config) (flowcontrol.Recorder, error) {
		a.recorder, err = format.Record(m, board, cfg, a.options.Record<<20, time.Now(), hide)
		return a.recorder, err
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
func (a *App) keepRecording(ctx context.Context) {
	if err := a.recorder.Run(ctx); err != nil {
		a.log.Error(err, "the recording has ended; requests are served as before")
	}
}

// recordingPage writes the recording as a file.
func (a *App) recordingPage(w http.ResponseWriter, _ *http.Request) {
	a.controller.Look(a.recorder.Seal)
	file, err := a.recorder.Bytes()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	name := "weir-" + strings.NewReplacer(":", "", "-", "").Replace(time.Now().UTC().Format(time.RFC3339)) + ".recording"
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Length", strconv.Itoa(len(file)))
	w.Header().Set("Content-Disposition", `attachment; filename="`+name+`"`)
	_, _ = w.Write(file) // an error: the reader is gone
}
