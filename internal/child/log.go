package child

import (
	"bytes"
	"strings"
	"sync"
)

// maxLog is how much a Log keeps, in bytes: the beginning.
const maxLog = 8 << 20

// Log keeps what a child writes, up to 8 MiB. The zero value is empty. Its methods may be called from any goroutine.
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

// String returns what has been written until now.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// Tail returns the last lines of a text, for messages.
func Tail(text string, lines int) string {
	all := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
