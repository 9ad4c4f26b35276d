package extproc

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-epp/weir/pkg/flowcontrol"
	"github.com/weir-epp/weir/pkg/request"
)

// expelled receives the error of an expelled body.
type expelled chan error

func (e expelled) expel(err error) { e <- err }

// The errors of bodies name their limit: for a large body, for the memory of all bodies, and for a slow body, whose
// time grows by a second for every 64 KiB.
func TestErrorsOfBodiesNameTheirLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wants := func(err, sentinel error, name string, value int64) {
			t.Helper()
			limited := new(flowcontrol.LimitedError)
			if !errors.As(err, &limited) || limited.Name != name || limited.Value != value || !errors.Is(err, sentinel) {
				t.Errorf("%v, want %s of %d", err, name, value)
			}
		}
		limits := request.Limits{MaxBodyBytes: 5000}
		wants(refusalOf(limits.CheckBody(5001)), flowcontrol.ErrTooLarge, "max-body-bytes", 5000)
		var memory bodyMemory
		slow := make(expelled, 1)
		a := &arrival{stream: slow}
		memory.expect(a, "tenant", time.Now(), 30*time.Second, 128<<10)
		wants(memory.charge(a, 0, 1001, 1000), flowcontrol.ErrNoMemory, "max-body-bytes-total", 1000)
		begun := time.Now()
		wants(<-slow, flowcontrol.ErrBodyTimeout, "body-timeout", 32_000)
		if after := time.Since(begun); after != 32*time.Second {
			t.Errorf("it was expelled after %v", after)
		}
	})
}
