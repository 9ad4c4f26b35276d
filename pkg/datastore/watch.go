package datastore

import (
	"errors"
	"fmt"
	"os"
)

// watch watches the directories on the files' present paths. After adding the watches it checks the paths again, since
// a change in between would go unnoticed.
func (f *Files) watch() error {
	if f.notify == nil {
		notify, err := f.open()
		if err != nil {
			return fmt.Errorf("opening a watch: %w", err)
		}
		f.notify = notify
	}
	const attempts = 10 // a link that changes faster than this is handled with the next event
	var err error
	for range attempts {
		// A watch belongs to a directory, not to its name, and the name may already mean another directory.
		for _, dir := range f.notify.WatchList() {
			_ = f.notify.Remove(dir) // the directory and its watch may be gone already
		}
		err = nil
		for _, file := range f.files {
			file.trail = trailTo(file.path)
			err = errors.Join(err, f.watchTrail(file.trail))
		}
		if f.steady() {
			break
		}
	}
	return err
}

// watchTrail adds the watches for one file.
func (f *Files) watchTrail(t trail) error {
	for dir := range t.dirs {
		err := f.notify.Add(dir)
		switch {
		case err == nil, errors.Is(err, os.ErrNotExist): // the next check notices that it is gone
		case errors.Is(err, os.ErrPermission) && t.passed[dir]:
			// It may be traversed but not listed. A replacement of it goes unnoticed.
		default:
			return fmt.Errorf("watching %s: %w", dir, err)
		}
	}
	return nil
}

// steady reports whether the paths are still the watched ones.
func (f *Files) steady() bool {
	for _, file := range f.files {
		if !trailTo(file.path).equal(file.trail) {
			return false
		}
	}
	return true
}
