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

// A change is read when the files have been quiet for settleTime, so that a file being written is not seen in halves,
// but at most settleAtMost after its first event.
const (
	settleTime   = 50 * time.Millisecond
	settleAtMost = time.Second
)

// Files follows files, all with one watch. A write in place, a rename over a file, the swap of a symbolic link anywhere
// on the way to it (Kubernetes swaps the ..data of a mounted ConfigMap) and the exchange of any directory on that way
// are seen alike. Nothing is polled: where there is no watch to be had, files are read at the start and at Reread only,
// which is logged as an error, and Err tells it.
type Files struct {
	log   logr.Logger
	again chan struct{}         // of capacity 1: Reread was called
	err   atomic.Pointer[error] // what the watch lacks; nil: nothing

	// Of the goroutine of Run, once that runs.
	files  []*followed
	open   func() (*fsnotify.Watcher, error)
	notify *fsnotify.Watcher // nil: there is none
}

// NewFiles follows nothing yet.
func NewFiles(log logr.Logger) *Files {
	return &Files{log: log, again: make(chan struct{}, 1), open: fsnotify.NewWatcher}
}

// Follow has changed called with the file's content once at the start of Run, after every change of the content, and
// after every Reread, always from the goroutine of Run. When the file cannot be read, is no regular file or is larger
// than MaxFileBytes, changed is called with the error, once for as long as the error stays the same; a file that appears
// later is seen. The content must not be modified. Follow is called before Run.
func (f *Files) Follow(path string, changed func(content []byte, err error)) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	f.files = append(f.files, &followed{path: path, changed: changed})
	return nil
}

// Len is how many files are followed.
func (f *Files) Len() int { return len(f.files) }

// Reread makes Run read every file again and call its function, whether anything has changed or not. It returns at once
// and is safe for concurrent use.
func (f *Files) Reread() {
	select {
	case f.again <- struct{}{}:
	default: // asked for already
	}
}

// Err is why changes of the files are not seen now; nil: they are. It is safe for concurrent use.
func (f *Files) Err() error {
	if err := f.err.Load(); err != nil {
		return *err
	}
	return nil
}

// Run follows the files until ctx is done, and returns nil.
func (f *Files) Run(ctx context.Context) error {
	defer func() {
		if f.notify != nil {
			_ = f.notify.Close()
		}
	}()
	settle := time.NewTimer(0)
	settle.Stop()
	defer settle.Stop()
	var first time.Time // of the events that are not read yet; zero: there are none
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
			settle.Stop()
			first = time.Time{}
			f.look(true)
			continue
		case <-settle.C:
			first = time.Time{}
			f.look(false)
			continue
		case event := <-events:
			if !f.concerns(event) {
				continue
			}
		case err := <-lost: // an overflow: anything may have happened
			if err == nil {
				continue
			}
		}
		now := time.Now()
		if first.IsZero() {
			first = now
		}
		settle.Reset(min(settleTime, first.Add(settleAtMost).Sub(now)))
	}
}

// look follows the ways as they are now and then reads every file.
func (f *Files) look(again bool) {
	f.note(f.watch())
	for _, file := range f.files {
		file.read(again)
	}
}

// note keeps and logs what the watch lacks, when that is news.
func (f *Files) note(err error) {
	before := f.Err()
	switch {
	case err == nil && before == nil:
	case err == nil:
		f.err.Store(nil)
		f.log.Info("the files are followed again", "files", f.paths())
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

// concerns reports whether an event may mean that the way to a file, or its content, has changed. A change of
// permissions counts only for a file that could not be read.
func (f *Files) concerns(event fsnotify.Event) bool {
	for _, file := range f.files {
		if file.trail.concerns(event.Name) && (event.Op != fsnotify.Chmod || file.failure != "") {
			return true
		}
	}
	return false
}
