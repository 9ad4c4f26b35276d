package datastore

import (
	"fmt"
	"io"
	"os"
)

// MaxFileBytes is the largest size of a followed file.
const MaxFileBytes = 1 << 20

// readBounded reads a regular file of at most MaxFileBytes bytes.
func readBounded(path string) ([]byte, error) { return ReadFile(path, MaxFileBytes) }

// ReadFile reads a regular file of at most most bytes.
func ReadFile(path string, most int64) ([]byte, error) {
	info, err := os.Stat(path) // before opening it, which would block on a named pipe
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
	content, err := io.ReadAll(io.LimitReader(file, most+1))
	if err != nil {
		return nil, err
	}
	if int64(len(content)) > most {
		return nil, fmt.Errorf("%s is larger than %d bytes", path, most)
	}
	return content, nil
}
