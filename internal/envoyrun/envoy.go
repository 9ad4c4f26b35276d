package envoyrun

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/weir-epp/weir/internal/child"
)

// Envoy is a running Envoy. Its methods may be called from any goroutine.
type Envoy struct {
	process *child.Process
	admin   admin
	address string // of the listener for requests, ip:port
	stats   string // of the listener with the counters of ext_proc; "" if there is none
	dir     string
	ownDir  bool // remove dir with Envoy

	mu     sync.Mutex
	ending bool        // guarded by mu; Envoy is expected to end, by Stop, Kill or the context
	detach func() bool // guarded by mu; detaches Kill from the context; nil before there is a process
}

// Start starts an Envoy and returns when it accepts requests. Envoy is killed when ctx ends, so ctx should be the whole
// test's or command's; Options.ReadyTimeout bounds the start. On an error nothing is left running, and the error has
// the end of Envoy's log.
func Start(ctx context.Context, o Options) (*Envoy, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	// The listener with the counters needs the port of the admin interface beforehand.
	reserved, release, err := reserve(orAnyPort(o.Admin))
	if err != nil {
		return nil, err
	}
	defer release()
	o.Admin = reserved
	bootstrap, err := o.Render()
	if err != nil {
		return nil, err
	}
	e := &Envoy{dir: o.Dir}
	if e.dir == "" {
		if e.dir, err = os.MkdirTemp("", "weir-envoy-"); err != nil {
			return nil, fmt.Errorf("envoyrun: %w", err)
		}
		e.ownDir = true
	}
	if err := e.launch(ctx, o, bootstrap); err != nil {
		err = fmt.Errorf("envoyrun: starting Envoy (%s): %w%s", o.Config, err, e.logTail())
		e.Kill()
		return nil, err
	}
	return e, nil
}

func (e *Envoy) launch(ctx context.Context, o Options, bootstrap Bootstrap) error {
	if err := bootstrap.bundle(e.dir, o.ModelServers); err != nil {
		return err
	}
	config, err := json.MarshalIndent(bootstrap, "", " ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(e.file("envoy.json"), config, 0o600); err != nil {
		return err
	}
	adminAddress := e.file("admin-address")
	if err := os.RemoveAll(adminAddress); err != nil { // of the last Envoy in this directory
		return err
	}
	cmd := exec.Command(o.Binary,
		"--config-path", e.file("envoy.json"),
		"--admin-address-path", adminAddress,
		"--disable-hot-restart",
		"--concurrency", strconv.Itoa(o.Concurrency),
		"--log-level", o.LogLevel,
		"--file-flush-interval-msec", "50", // the access log's
	)
	if err := e.start(cmd); err != nil {
		return err
	}
	e.attach(ctx)
	return e.waitReady(ctx, o.ReadyTimeout, adminAddress)
}

// start starts cmd with its output in the log files. Standard output has only the access log.
func (e *Envoy) start(cmd *exec.Cmd) error {
	const appending = os.O_CREATE | os.O_WRONLY | os.O_APPEND
	access, err := os.OpenFile(e.file("access.log"), appending, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = access.Close() }()
	log, err := os.OpenFile(e.file("envoy.log"), appending, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	cmd.Stdout, cmd.Stderr = access, log
	e.process, err = child.Start(cmd)
	return err
}

// waitReady waits until Envoy has its addresses and accepts requests, and stores the addresses.
func (e *Envoy) waitReady(ctx context.Context, timeout time.Duration, adminAddress string) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	last := errors.New("admin interface not open yet")
	for {
		if address, err := os.ReadFile(adminAddress); err == nil && len(address) > 0 {
			e.admin.address = string(address)
			if _, err = e.admin.get(ctx, "/ready"); err == nil {
				e.address, e.stats, err = e.admin.listeners(ctx)
				return err
			}
			last = err
		}
		select {
		case <-e.process.Done():
			return fmt.Errorf("it ended: %v", e.process.State())
		case <-ctx.Done():
			return fmt.Errorf("not ready after %v: %w", timeout, last)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// Addr returns the address to send requests to, ip:port. If it listens on all interfaces, it is the unspecified
// address.
func (e *Envoy) Addr() string { return e.address }

// URL returns "http://" and Addr.
func (e *Envoy) URL() string { return "http://" + e.address }

// StatsURL returns the root of the listener with the counters of ext_proc; "" if the configuration has none.
func (e *Envoy) StatsURL() string {
	if e.stats == "" {
		return ""
	}
	return "http://" + e.stats
}

// AdminURL returns the root of the admin interface.
func (e *Envoy) AdminURL() string { return "http://" + e.admin.address }

// Pid returns the process ID, also of an Envoy that has ended.
func (e *Envoy) Pid() int { return e.process.Pid() }

// EndpointsFile returns the path of the file from which the model servers' cluster reads its endpoints (EDS), unless
// Options.EndpointsFile names another. A file that is renamed over it takes effect within some milliseconds.
func (e *Envoy) EndpointsFile() string { return e.file(edsFile) }

// Done returns a channel that is closed when Envoy has ended.
func (e *Envoy) Done() <-chan struct{} { return e.process.Done() }

// Stats returns the counters and gauges whose full names match the regular expression; all for "". Worker threads
// publish their counts within about 100 ms.
func (e *Envoy) Stats(ctx context.Context, filter string) (map[string]int64, error) {
	values, err := e.admin.stats(ctx, filter)
	if err != nil {
		return nil, fmt.Errorf("envoyrun: statistics: %w", err)
	}
	return values, nil
}

func (e *Envoy) file(name string) string { return filepath.Join(e.dir, name) }

// stopGrace is the time for which Stop waits for Envoy to end before it kills it.
const stopGrace = 5 * time.Second

// Pause suspends Envoy (SIGSTOP): connections stay open, without answers.
func (e *Envoy) Pause() error { return e.process.Signal(syscall.SIGSTOP) }

// Resume lets a paused Envoy continue.
func (e *Envoy) Resume() error { return e.process.Signal(syscall.SIGCONT) }

// Stop ends Envoy and returns when it has ended: orderly (which cuts running requests), or by force after 5 s. It
// returns an error, with the end of the log, if Envoy had ended by itself before, or had to be killed. After a Stop, a
// Kill or the end of Start's context it does nothing.
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

// Kill ends Envoy at once (SIGKILL), paused or not, and returns when it has ended. Clients see their connections reset.
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
