package scene

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/weir-epp/weir/internal/envoyrun"
	"github.com/weir-epp/weir/internal/modelsim"
)

// ErrUnasked is wrapped in the cause of a scene's end if one of its parts ended by itself.
var ErrUnasked = errors.New("ended unexpectedly")

// Scene is a set of running processes. Its methods are for one goroutine.
type Scene struct {
	dir string
	ctx context.Context
	end context.CancelCauseFunc

	parts []part // in starting order
	mu    sync.Mutex
	ended bool // Close has begun: processes are expected to end
}

// part is one started process or server.
type part struct {
	name string
	stop func() error
}

// New returns an empty scene with its files in dir, which must exist. The end of ctx kills its processes; Close must be
// called even then.
func New(ctx context.Context, dir string) *Scene {
	s := &Scene{dir: dir}
	s.ctx, s.end = context.WithCancelCause(ctx)
	return s
}

// Dir returns the directory of the scene's files.
func (s *Scene) Dir() string { return s.dir }

// Context returns a context that ends with New's context, at Close, and when a part has ended by itself; context.Cause
// then names the part.
func (s *Scene) Context() context.Context { return s.ctx }

// Close ends all parts, the last started first, and returns when they have ended. Further calls do nothing.
func (s *Scene) Close() error {
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	interrupted := s.ctx.Err() != nil // then processes may have ended by themselves
	var errs []error
	for _, p := range slices.Backward(s.parts) {
		if err := p.stop(); err != nil && !interrupted {
			errs = append(errs, fmt.Errorf("scene: ending %s: %w", p.name, err))
		}
	}
	s.parts = nil
	s.end(context.Canceled)
	return errors.Join(errs...)
}

// watch ends the scene's context when a process ends before Close.
func (s *Scene) watch(name, log string, done <-chan struct{}) {
	go func() {
		<-done
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.ended {
			s.end(fmt.Errorf("scene: %s %w; its log is %s", name, ErrUnasked, log))
		}
	}()
}

// Models starts count model servers in this process and returns their addresses, ip:port each.
func (s *Scene) Models(count int, config modelsim.Config) ([]string, error) {
	addresses := make([]string, count)
	for i := range addresses {
		config.Seed++ // otherwise all would give the same answers at the same pace
		config.Engine.Seed++
		server, err := modelsim.Start(config)
		if err != nil {
			return nil, fmt.Errorf("scene: model server: %w", err)
		}
		s.parts = append(s.parts, part{"a model server", func() error { server.Close(); return nil }})
		addresses[i] = server.Address()
	}
	return addresses, nil
}

// Envoy starts an Envoy with its logs in the directory of that name. It sets Options.Dir.
func (s *Scene) Envoy(name string, options envoyrun.Options) (*envoyrun.Envoy, error) {
	options.Dir = filepath.Join(s.dir, name)
	if err := os.Mkdir(options.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("scene: %w", err)
	}
	envoy, err := envoyrun.Start(s.ctx, options)
	if err != nil {
		return nil, err
	}
	s.parts = append(s.parts, part{name, envoy.Stop})
	s.watch(name, envoy.Log(), envoy.Done())
	return envoy, nil
}
