package child

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"sync"
)

// maxLog is the largest number of bytes that a Log keeps: the beginning.
const maxLog = 8 << 20

// Log keeps the output of a child, up to 8 MiB. The zero value is empty. Its methods may be called from any goroutine.
type Log struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write implements io.Writer. It never fails.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.buf.Write(p[:min(len(p), max(0, maxLog-l.buf.Len()))])
	return len(p), nil
}

// String returns the text written so far.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// LogFile is the path of a file to which a child writes directly: a line is readable as soon as it is written, whereas
// through a pipe it comes later.
type LogFile string

// Start starts a command whose output goes to the file, which is created anew.
func (l LogFile) Start(cmd *exec.Cmd) (*Process, error) {
	file, err := os.Create(string(l))
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // the child has its own
	cmd.Stdout, cmd.Stderr = file, file
	return Start(cmd)
}

// String returns the text written so far, or the error of reading the file.
func (l LogFile) String() string {
	text, err := os.ReadFile(string(l))
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// Tail returns the last lines of a text, for messages.
func Tail(text string, lines int) string {
	all := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
