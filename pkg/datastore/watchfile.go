package datastore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

// MaxFileBytes bounds a watched file.
const MaxFileBytes = 1 << 20

// A change is read when the file has been quiet for settleTime, so that a file being written is not seen in halves,
// but at most settleAtMost after its first event.
const (
	settleTime   = 50 * time.Millisecond
	settleAtMost = time.Second
)

// WatchFile calls changed with the file's content once at the start and after every change of the content, until ctx
// is done; then it returns nil. All calls come from the caller's goroutine. A write in place, a rename over the file,
// and the swap of a symbolic link anywhere on the way to it (Kubernetes swaps the ..data of a mounted ConfigMap) are
// seen alike. When the file cannot be read, is no regular file or is larger than MaxFileBytes, changed is called with
// the error, once for as long as the error stays the same; a file that appears later is seen. Nothing is polled. The
// content must not be modified.
//
// An error is returned only when no watch can be had at the start.
func WatchFile(ctx context.Context, path string, changed func(content []byte, err error)) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return fmt.Errorf("datastore: resolving %s: %w", path, err)
	}
	notify, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("datastore: opening a watch: %w", err)
	}
	defer func() { _ = notify.Close() }()
	w := fileWatch{path: path, notify: notify, changed: changed}
	if err := w.follow(); err != nil {
		return err
	}
	w.read()
	return w.run(ctx)
}

type fileWatch struct {
	path    string
	notify  *fsnotify.Watcher
	changed func([]byte, error)

	trail trail // what is watched now

	called  bool
	content []byte // of the last call
	failure string // of the last call; "": it had content
}

func (w *fileWatch) run(ctx context.Context) error {
	settle := time.NewTimer(0)
	settle.Stop()
	defer settle.Stop()
	var first time.Time // of the events that are not read yet; zero: there are none
	for {
		select {
		case <-ctx.Done():
			return nil
		case event := <-w.notify.Events:
			if !w.trail.concerns(event.Name) || event.Op == fsnotify.Chmod && !w.failed() {
				continue
			}
		case lost := <-w.notify.Errors: // an overflow: anything may have happened
			if lost == nil {
				continue
			}
		case <-settle.C:
			first = time.Time{}
			if err := w.follow(); err != nil {
				w.report(nil, err) // the next event tries again
			} else {
				w.read()
			}
			continue
		}
		now := time.Now()
		if first.IsZero() {
			first = now
		}
		settle.Reset(min(settleTime, first.Add(settleAtMost).Sub(now)))
	}
}

func (w *fileWatch) failed() bool { return w.failure != "" }

// follow watches the directories on the way to the file as it is now. It looks again after adding watches: what
// changed in between had nobody watching.
func (w *fileWatch) follow() error {
	const attempts = 10 // a link that changes faster than this is seen with the next event
	for range attempts {
		next := trailTo(w.path)
		for _, dir := range w.notify.WatchList() {
			if !next.dirs[dir] {
				_ = w.notify.Remove(dir) // it may be gone already, and its watch with it
			}
		}
		for dir := range next.dirs {
			if err := w.notify.Add(dir); err != nil && !errors.Is(err, os.ErrNotExist) {
				return fmt.Errorf("datastore: watching %s: %w", dir, err)
			}
		}
		w.trail = next
		if trailTo(w.path).equal(next) {
			break
		}
	}
	return nil
}

func (w *fileWatch) read() { w.report(readBounded(w.path)) }

// report calls changed if there is news.
func (w *fileWatch) report(content []byte, err error) {
	failure := ""
	if err != nil {
		failure = err.Error()
	}
	if w.called && failure == w.failure && (err != nil || bytes.Equal(content, w.content)) {
		return
	}
	w.called, w.content, w.failure = true, content, failure
	w.changed(content, err)
}

// readBounded reads a regular file of at most MaxFileBytes.
func readBounded(path string) ([]byte, error) {
	info, err := os.Stat(path) // before opening: that would block on a named pipe
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	content, err := io.ReadAll(io.LimitReader(file, MaxFileBytes+1))
	if err != nil {
		return nil, err
	}
	if len(content) > MaxFileBytes {
		return nil, fmt.Errorf("%s is larger than %d bytes", path, MaxFileBytes)
	}
	return content, nil
}
