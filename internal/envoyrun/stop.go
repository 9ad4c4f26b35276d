package envoyrun

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// stopGrace is how long Stop waits for Envoy to end by itself before it kills it.
const stopGrace = 5 * time.Second

// Pause suspends Envoy (SIGSTOP): connections stay open, and nothing is answered. It may take a moment to act.
func (e *Envoy) Pause() error { return e.process.Signal(syscall.SIGSTOP) }

// Resume lets a paused Envoy continue.
func (e *Envoy) Resume() error { return e.process.Signal(syscall.SIGCONT) }

// Stop ends Envoy and returns when it is gone: orderly (which cuts running requests), or by force after 5 s. It returns
// an error, with the end of the log, if Envoy had ended by itself before, or could not be ended orderly. After a Stop,
// a Kill or the end of Start's context it does nothing.
func (e *Envoy) Stop() error {
	return e.end(func() error {
		resumed := e.Resume()
		orderly, err := e.process.Stop(stopGrace)
		if err == nil && !orderly {
			err = fmt.Errorf("envoyrun: Envoy did not end within %v of SIGTERM%s", stopGrace, e.logTail())
		}
		return errors.Join(resumed, err)
	})
}

// Kill ends Envoy at once (SIGKILL), paused or not, and returns when it is gone. Clients see their connections reset.
func (e *Envoy) Kill() {
	_ = e.end(func() error { return e.process.Kill() })
}

// attach makes the end of ctx kill Envoy.
func (e *Envoy) attach(ctx context.Context) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.detach = context.AfterFunc(ctx, e.Kill)
}

// end ends Envoy in the given way, once; it leaves neither a process nor a temporary file. Concurrent callers wait for
// the first.
func (e *Envoy) end(way func() error) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ending {
		return nil
	}
	e.ending = true
	if e.ownDir {
		defer func() { _ = os.RemoveAll(e.dir) }()
	}
	if e.process == nil {
		return nil
	}
	e.detach()
	if e.process.Ended() {
		return fmt.Errorf("envoyrun: Envoy had ended before: %v%s", e.process.State(), e.logTail())
	}
	return way()
}
