package sink

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// errNotOpen is the error for records soon after the file could not be opened.
var errNotOpen = errors.New("sink: the file could not be opened")

// file is a file of bounded size.
type file struct {
	*os.File
	path string
	size int64
}

// open opens a file to append to it. It makes no directory, and does not wait for the reader of a pipe.
func open(path string) (*file, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, fmt.Errorf("sink: %w", err)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", path)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("sink: %w", err), f.Close())
	}
	return &file{File: f, path: path, size: info.Size()}, nil
}

// append writes a line. If the file is not empty and would exceed the size, it is renamed first.
func (f *file) append(line []byte, most int64) error {
	if f.size > 0 && f.size+int64(len(line)) > most {
		if err := f.rotate(); err != nil {
			return err
		}
	}
	n, err := f.Write(line)
	if err != nil {
		if n > 0 { // the next record begins a line
			err = errors.Join(err, f.Truncate(f.size))
		}
		return fmt.Errorf("sink: %w", err)
	}
	f.size += int64(n)
	return nil
}

// rotate renames the file to FILE.1, and begins another one.
func (f *file) rotate() error {
	if err := os.Rename(f.path, f.path+".1"); err != nil {
		return fmt.Errorf("sink: %w", err)
	}
	next, err := open(f.path)
	if err != nil {
		return err
	}
	_ = f.Close() // its content was written already
	*f = *next
	return nil
}
