package binaries

import (
	"context"
	"strings"
	"testing"

	"github.com/weir-epp/weir/internal/child"
	"github.com/weir-epp/weir/internal/scene"
)

// StartEPP starts the epp that was built, and returns when it listens. The end of the test kills it, shows the end of
// its log if the test has failed, and fails the test if epp has found a race.
func StartEPP(t testing.TB, options scene.EPPOptions) *scene.EPP {
	t.Helper()
	options.Binary = Path(EPP)
	ctx, kill := context.WithCancel(context.Background()) // t.Context() ends before the test's clean-up
	s := scene.New(ctx, t.TempDir())
	var e *scene.EPP
	t.Cleanup(func() {
		kill()
		_ = s.Close()
		if e == nil {
			return
		}
		if t.Failed() {
			t.Logf("end of epp's log:\n%s", child.Tail(e.Log.String(), 40))
		}
		if strings.Contains(e.Log.String(), "DATA RACE") {
			t.Error("epp: data race")
		}
	})
	e, err := s.EPP(options)
	if err != nil {
		t.Fatal(err)
	}
	return e
}
