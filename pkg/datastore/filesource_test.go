package datastore

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr/funcr"

	"github.com/weir-epp/weir/pkg/scheduling"
)

// running is a store that follows an endpoints file, with everything observable about it.
type running struct {
	*Store
	path      string
	snapshots chan *scheduling.Snapshot
	states    chan error // what OnFile was called with

	mu   sync.Mutex
	logs []string
}

func runOnFile(t *testing.T, content string) *running {
	t.Helper()
	r := &running{
		path:      filepath.Join(t.TempDir(), "endpoints.yaml"),
		snapshots: make(chan *scheduling.Snapshot, 100),
		states:    make(chan error, 100),
	}
	write(t, r.path, content)
	config := DefaultConfig()
	config.File, config.OnFile = r.path, func(err error) { r.states <- err }
	log := funcr.New(func(_, args string) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.logs = append(r.logs, args)
	}, funcr.Options{})
	var err error
	if r.Store, err = New(config, log); err != nil {
		t.Fatal(err)
	}
	r.Subscribe(func(s *scheduling.Snapshot) { r.snapshots <- s })
	files := NewFiles(log)
	do(t, r.Follow(files))
	run(t, files)
	return r
}

// replace renames a new file over the old one, so that no intermediate state can be seen.
func (r *running) replace(t *testing.T, content string) {
	t.Helper()
	write(t, r.path+".new", content)
	do(t, os.Rename(r.path+".new", r.path))
}

func (r *running) logged(part string) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, line := range r.logs {
		if strings.Contains(line, part) {
			n++
		}
	}
	return n
}

const twoEndpoints = "endpoints: [{address: '10.0.0.1:80'}, {address: '10.0.0.2:80', models: [a]}]"

func TestFile(t *testing.T) {
	r := runOnFile(t, twoEndpoints)
	wantSeen(t, eventually(t, r.snapshots, "the first snapshot"), "10.0.0.1:80", "10.0.0.2:80")
	r.replace(t, "endpoints: [{address: '10.0.0.2:80', models: [a]}]")
	wantSeen(t, eventually(t, r.snapshots, "a smaller pool"), "10.0.0.2:80")
	r.replace(t, "endpoints: []")
	wantSeen(t, eventually(t, r.snapshots, "an empty pool"))
	r.replace(t, twoEndpoints)
	wantSeen(t, eventually(t, r.snapshots, "all of it again"), "10.0.0.1:80", "10.0.0.2:80")
}

// A broken or missing file keeps the last good state and is logged once, and so is its recovery.
func TestBrokenFileKeepsTheLastGoodState(t *testing.T) {
	r := runOnFile(t, twoEndpoints)
	eventually(t, r.snapshots, "the first snapshot")
	broken := []struct{ content, want string }{
		{"endpoints: [{address: 'vllm:80'}]", "is a hostname"},
		{"endpoints: [{address: 'vllm:80', model: a}]", "endpoints[0].model: unknown field"},
		{"", "endpoints: missing"},
	}
	for _, b := range broken {
		r.replace(t, b.content)
		if err := eventually(t, r.states, b.want); err == nil || !strings.Contains(err.Error(), b.want) {
			t.Fatalf("%v does not say %q", err, b.want)
		}
		if err := r.Invalid(); err == nil || !strings.Contains(err.Error(), b.want) {
			t.Fatalf("Invalid: %v", err)
		}
	}
	do(t, os.Remove(r.path))
	if err := eventually(t, r.states, "a lost file"); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("%v", err)
	}
	if n := r.logged("unusable"); n != len(broken)+1 {
		t.Errorf("%d log lines for %d states", n, len(broken)+1)
	}
	wantSeen(t, r.Current(), "10.0.0.1:80", "10.0.0.2:80")
	if len(r.snapshots) > 0 {
		t.Error("a broken file was published")
	}

	r.replace(t, "endpoints: [{address: '10.0.0.3:80'}]")
	wantSeen(t, eventually(t, r.snapshots, "a good file"), "10.0.0.3:80")
	if err := eventually(t, r.states, "a good file"); err != nil || r.Invalid() != nil {
		t.Fatalf("%v, Invalid: %v", err, r.Invalid())
	}
	if r.logged("good again") != 1 {
		t.Error("the recovery is not logged once")
	}
}

func TestFileAtStart(t *testing.T) {
	config := DefaultConfig()
	config.File = filepath.Join(t.TempDir(), "endpoints.yaml")
	for _, c := range []struct{ content, want string }{
		{"", "no such file"},
		{"endpoints: [{address: x}]\nmore: 1\n", "more: unknown field"},
	} {
		if c.content != "" {
			write(t, config.File, c.content)
		}
		_, err := New(config, funcr.New(func(_, _ string) {}, funcr.Options{}))
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), config.File) {
			t.Errorf("%v does not say %q", err, c.want)
		}
	}
}
