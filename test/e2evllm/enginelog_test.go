//go:build e2evllm

package e2evllm

import (
	"bytes"
	"strings"
	"sync"
	"time"
)

// engineLog is vLLM's output by lines, each with the time when it came.
type engineLog struct {
	mu    sync.Mutex
	part  []byte // of the line that has not ended
	lines []logLine
}

type logLine struct {
	at   time.Time
	text string
}

// Write takes in what vLLM says.
func (l *engineLog) Write(b []byte) (int, error) {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.part = append(l.part, b...)
	for {
		line, rest, whole := bytes.Cut(l.part, []byte("\n"))
		if !whole {
			return len(b), nil
		}
		l.lines = append(l.lines, logLine{now, string(line)})
		l.part = rest
	}
}

// when is the time of the first line with all the parts; false if there is none.
func (l *engineLog) when(parts ...string) (time.Time, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
search:
	for _, line := range l.lines {
		for _, part := range parts {
			if !strings.Contains(line.text, part) {
				continue search
			}
		}
		return line.at, true
	}
	return time.Time{}, false
}

func (l *engineLog) tail(n int) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var text strings.Builder
	for _, line := range l.lines[max(0, len(l.lines)-n):] {
		text.WriteString(line.text + "\n")
	}
	return text.String()
}
