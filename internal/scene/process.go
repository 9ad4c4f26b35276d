package scene

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// Longest times that a process may take to say where it listens, and to end by itself.
const (
	startTimeout = 30 * time.Second
	stopGrace    = eppGrace + 3*time.Second
)

// Process is a child process.
type Process struct {
	name string
	log  string // path
	cmd  *exec.Cmd
	done chan struct{} // closed when it was reaped
}

// Pid is the process ID, also of a process that has ended.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Server starts this program again with other arguments, as a process that serves at addresses which it writes, as a JSON
// list of ip:port, to the file named by its last argument. It returns these addresses.
func (s *Scene) Server(name string, arguments ...string) (*Process, []string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, fmt.Errorf("scene: %w", err)
	}
	file := filepath.Join(s.dir, name+"-addresses.json")
	process, err := s.start(name, self, append(arguments, file))
	if err != nil {
		return nil, nil, err
	}
	var addresses []string
	if err := s.await(process, file, &addresses); err != nil {
		return nil, nil, err
	}
	return process, addresses, nil
}

// WriteAddresses writes the file that Server waits for, in one step.
func WriteAddresses(file string, addresses []string) error {
	text, err := json.Marshal(addresses)
	if err != nil {
		return fmt.Errorf("scene: addresses: %w", err)
	}
	if err := os.WriteFile(file+".new", text, 0o600); err != nil {
		return fmt.Errorf("scene: addresses: %w", err)
	}
	return os.Rename(file+".new", file)
}

// start starts a process whose output goes to a log of its name.
func (s *Scene) start(name, path string, arguments []string) (*Process, error) {
	p := &Process{name: name, log: filepath.Join(s.dir, name+".log"), done: make(chan struct{})}
	log, err := os.Create(p.log)
	if err != nil {
		return nil, fmt.Errorf("scene: %w", err)
	}
	defer func() { _ = log.Close() }()
	p.cmd = exec.CommandContext(s.ctx, path, arguments...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = ownGroup()
	if err := p.spawn(); err != nil {
		return nil, fmt.Errorf("scene: starting %s: %w", name, err)
	}
	s.parts = append(s.parts, part{name, p.stop})
	s.watch(name, p.log, p.done)
	return p, nil
}

// spawn starts the process and reaps it from one goroutine that keeps its thread: the parent-death signal is the
// thread's.
func (p *Process) spawn() error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			_ = p.cmd.Wait() // how it ended is in cmd.ProcessState
			close(p.done)
		}
	}()
	return <-started
}

// stop asks the process to end, waits, and kills it after stopGrace.
func (p *Process) stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-p.done:
		return nil
	case <-time.After(stopGrace):
	}
	_ = p.cmd.Process.Kill()
	<-p.done
	return fmt.Errorf("it did not end within %v of SIGTERM; its log is %s", stopGrace, p.log)
}

// await waits until the process has written a JSON file.
func (s *Scene) await(p *Process, file string, into any) error {
	ctx, cancel := context.WithTimeout(s.ctx, startTimeout)
	defer cancel()
	for {
		text, err := os.ReadFile(file)
		switch {
		case err == nil:
			if err := json.Unmarshal(text, into); err != nil {
				return fmt.Errorf("scene: %s: where it listens: %w", p.name, err)
			}
			return nil
		case !errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("scene: %s: %w", p.name, err)
		}
		select {
		case <-p.done:
			return p.endedAtStart()
		case <-ctx.Done():
			select { // its end may be what ended the scene
			case <-p.done:
				return p.endedAtStart()
			default:
				return fmt.Errorf("scene: %s does not listen: %w", p.name, context.Cause(ctx))
			}
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func (p *Process) endedAtStart() error {
	return fmt.Errorf("scene: %s ended at its start (%v):\n%s", p.name, p.cmd.ProcessState, tail(p.log))
}

// tail is the end of a log for an error message.
func tail(log string) string {
	text, err := os.ReadFile(log)
	if err != nil {
		return err.Error()
	}
	const lines = 20
	all := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
