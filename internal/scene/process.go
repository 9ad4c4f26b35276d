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
	"time"

	"github.com/weir-epp/weir/internal/child"
)

// The longest times for a process to report its addresses, and to end by itself.
const (
	startTimeout = 30 * time.Second
	stopGrace    = eppGrace + 3*time.Second
)

// Process is a process of the scene.
type Process struct {
	*child.Process
	// Log has its output.
	Log  child.LogFile
	name string
}

// Server starts this program again with other arguments, and returns its addresses. The process must write them, a JSON
// list of ip:port, to the file named by its last argument.
func (s *Scene) Server(name string, arguments ...string) (*Process, []string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, fmt.Errorf("scene: %w", err)
	}
	file := filepath.Join(s.dir, name+"-addresses.json")
	process, err := s.start(name, exec.CommandContext(s.ctx, self, append(arguments, file)...))
	if err != nil {
		return nil, nil, err
	}
	var addresses []string
	if err := s.await(process, file, &addresses); err != nil {
		return nil, nil, err
	}
	return process, addresses, nil
}

// WriteAddresses atomically writes the file awaited by Server.
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
func (s *Scene) start(name string, cmd *exec.Cmd) (*Process, error) {
	p := &Process{name: name, Log: child.LogFile(filepath.Join(s.dir, name+".log"))}
	var err error
	if p.Process, err = p.Log.Start(cmd); err != nil {
		return nil, fmt.Errorf("scene: starting %s: %w", name, err)
	}
	s.parts = append(s.parts, part{name, p.stop})
	s.watch(name, string(p.Log), p.Done())
	return p, nil
}

// stop asks the process to end, waits, and kills it after stopGrace.
func (p *Process) stop() error {
	orderly, err := p.Stop(stopGrace)
	if err == nil && !orderly {
		err = fmt.Errorf("it did not end within %v of SIGTERM; its log is %s", stopGrace, string(p.Log))
	}
	return err
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
		case <-p.Done():
			return p.endedAtStart()
		case <-ctx.Done():
			if p.Ended() { // this may have ended the scene
				return p.endedAtStart()
			}
			return fmt.Errorf("scene: %s does not listen: %w", p.name, context.Cause(ctx))
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func (p *Process) endedAtStart() error {
	return fmt.Errorf("scene: %s ended at its start (%v):\n%s", p.name, p.State(), child.Tail(p.Log.String(), 20))
}
