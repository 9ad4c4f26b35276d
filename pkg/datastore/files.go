package datastore

import (
	"context"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/go-logr/logr"
)

// Changes are read once the files have been quiet for QuietTime, or Files.Quiet, so that half-written files are not
// read, but at most quietAtMost after the first event.
const (
	QuietTime   = 50 * time.Millisecond
	quietAtMost = time.Second
)

// Files watches files for changes, with one watch for all of them. It notices a write in place, a rename over a file, a
// swapped symbolic link anywhere on its path (Kubernetes swaps the ..data of a mounted ConfigMap), and a replaced
// directory on that path. It never polls: if the system grants no watch, files are read only at the start and at
// Reread; this is logged as an error, which Err also returns.
type Files struct {
	// Quiet is the time without events before files are read; it must be set before Run. NewFiles sets QuietTime.
	Quiet time.Duration

	log   logr.Logger
	again chan struct{}         // of capacity 1; signals a call of Reread
	err   atomic.Pointer[error] // the reason why changes may be missed; nil if they are not

	// Owned by Run's goroutine once Run has started.
	files  []*followed
	open   func() (*fsnotify.Watcher, error)
	notify *fsnotify.Watcher // nil if there is no watch
}

// NewFiles returns a Files that follows nothing yet.
func NewFiles(log logr.Logger) *Files {
	return &Files{Quiet: QuietTime, log: log, again: make(chan struct{}, 1), open: fsnotify.NewWatcher}
}

// Follow registers changed to be called with the file's content: once when Run starts, after every change of the
// content, and after every Reread, always from Run's goroutine. If the file cannot be read, is not a regular file, or
// is larger than MaxFileBytes, changed is called with the error, and not again for the same error. A file that appears
// later is noticed. The content must not be modified. Follow must be called before Run.
func (f *Files) Follow(path string, changed func(content []byte, err error)) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	f.files = append(f.files, &followed{path: path, changed: changed})
	return nil
}

// Len returns the number of files followed.
func (f *Files) Len() int { return len(f.files) }

// Reread makes Run read every file again and call its function, even if nothing has changed. It returns at once and is
// safe for concurrent use.
func (f *Files) Reread() {
	select {
	case f.again <- struct{}{}:
	default: // a reread is pending already
	}
}

// Err returns the reason why changes of the files are missed now, or nil. It is safe for concurrent use.
func (f *Files) Err() error {
	if err := f.err.Load(); err != nil {
		return *err
	}
	return nil
}

// Run watches the files until ctx is done, and returns nil.
func (f *Files) Run(ctx context.Context) error {
	defer func() {
		if f.notify != nil {
			_ = f.notify.Close()
		}
	}()
	quiet := time.NewTimer(0)
	quiet.Stop()
	defer quiet.Stop()
	var first time.Time // of the events not read yet; zero if there are none
	f.look(false)
	for {
		var events chan fsnotify.Event
		var lost chan error
		if f.notify != nil {
			events, lost = f.notify.Events, f.notify.Errors
		}
		select {
		case <-ctx.Done():
			return nil
		case <-f.again:
			f.log.Info("reading the files again", "files", f.paths())
			quiet.Stop()
			first = time.Time{}
			f.look(true)
			continue
		case <-quiet.C:
			first = time.Time{}
			f.look(false)
			continue
		case event := <-events:
			if !f.concerns(event) {
				continue
			}
		case err := <-lost: // an overflow: any event may be lost
			if err == nil {
				continue
			}
		}
		now := time.Now()
		if first.IsZero() {
			first = now
		}
		quiet.Reset(min(f.Quiet, first.Add(quietAtMost).Sub(now)))
	}
}

// look watches the present paths, then reads every file.
func (f *Files) look(again bool) {
	f.note(f.watch())
	for _, file := range f.files {
		file.read(again)
	}
}

// note stores and logs the problems of the watch, if it has changed.
func (f *Files) note(err error) {
	before := f.Err()
	switch {
	case err == nil && before == nil:
	case err == nil:
		f.err.Store(nil)
		f.log.Info("Weir follows the files again", "files", f.paths())
	case before == nil || before.Error() != err.Error():
		f.err.Store(&err)
		f.log.Error(err, "FILES ARE NOT FOLLOWED: until SIGHUP a change of one may not be seen "+
			"(the system's limits are fs.inotify.max_user_instances and fs.inotify.max_user_watches)", "files", f.paths())
	}
}

func (f *Files) paths() []string {
	paths := make([]string, len(f.files))
	for i, file := range f.files {
		paths[i] = file.path
	}
	return paths
}

// concerns reports whether an event may be a change of a file's path or content. A change of permissions matters only
// if the file could not be read.
func (f *Files) concerns(event fsnotify.Event) bool {
	for _, file := range f.files {
		if file.trail.concerns(event.Name) && (event.Op != fsnotify.Chmod || file.failure != "") {
			return true
		}
	}
	return false
}
