package envoyrun

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
)

// Log returns the path of Envoy's own log. It is removed with Envoy unless Options.Dir was set.
func (e *Envoy) Log() string { return e.file("envoy.log") }

// AccessLog returns the lines of the access log so far: one per finished request, at most some 100 ms late.
func (e *Envoy) AccessLog() ([]string, error) {
	content, err := os.ReadFile(e.file("access.log"))
	if err != nil {
		return nil, err
	}
	return strings.FieldsFunc(string(content), func(r rune) bool { return r == '\n' }), nil
}

// AccessEntries returns the lines of the access log so far as objects: their fields are the keys of the shipped files'
// json_format; numbers are float64s. A line that is not a JSON object is an error.
func (e *Envoy) AccessEntries() ([]map[string]any, error) {
	lines, err := e.AccessLog()
	if err != nil {
		return nil, err
	}
	entries := make([]map[string]any, len(lines))
	for i, line := range lines {
		if err := json.Unmarshal([]byte(line), &entries[i]); err != nil {
			return nil, fmt.Errorf("envoyrun: access log, line %d: %w", i+1, err)
		}
	}
	return entries, nil
}

// logTail returns the end of Envoy's log for an error message, on lines of its own; empty if there is nothing to show.
func (e *Envoy) logTail() string {
	const tail = 4 << 10
	content, err := readTail(e.Log(), tail)
	if err != nil || len(bytes.TrimSpace(content)) == 0 {
		return ""
	}
	return "\nthe end of its log:\n" + string(bytes.TrimSpace(content))
}

// readTail reads at most the last n bytes of a file. A file that does not exist counts as empty.
func readTail(path string, n int64) ([]byte, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	size, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, err
	}
	if _, err := file.Seek(max(0, size-n), io.SeekStart); err != nil {
		return nil, err
	}
	return io.ReadAll(file)
}
