package datastore

import (
	"errors"
	"fmt"
	"os"
)

// watch watches the directories on the ways to the files as they are now. It looks again after adding watches: what
// changed in between had nobody watching.
func (f *Files) watch() error {
	if f.notify == nil {
		notify, err := f.open()
		if err != nil {
			return fmt.Errorf("opening a watch: %w", err)
		}
		f.notify = notify
	}
	const attempts = 10 // a link that changes faster than this is seen with the next event
	var err error
	for range attempts {
		// A watch is of a directory, not of its name: a name may stand for another directory than it did.
		for _, dir := range f.notify.WatchList() {
			_ = f.notify.Remove(dir) // it may be gone already, and its watch with it
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

// watchTrail adds what is to be watched for one file.
func (f *Files) watchTrail(t trail) error {
	for dir := range t.dirs {
		err := f.notify.Add(dir)
		switch {
		case err == nil, errors.Is(err, os.ErrNotExist): // the next look sees that it is gone
		case errors.Is(err, os.ErrPermission) && t.passed[dir]:
			// It may be gone through, but not be listed: others exchange it, if anybody does, and cannot be watched.
		default:
			return fmt.Errorf("watching %s: %w", dir, err)
		}
	}
	return nil
}

// steady reports whether the ways are still those that are watched.
func (f *Files) steady() bool {
	for _, file := range f.files {
		if !trailTo(file.path).equal(file.trail) {
			return false
		}
	}
	return true
}
