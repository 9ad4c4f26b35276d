package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// An endless replay of a forged recording, or one with ever growing memory, ends with an error.
func TestForgedRecordingsEnd(t *testing.T) {
	file := filepath.Join(t.TempDir(), "forged.recording")
	if err := os.WriteFile(file, []byte("twelve bytes"), 0o600); err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	defer close(over)
	looping := func() bool {
		select {
		case <-over:
			return false
		default:
			return true
		}
	}
	runtime.GC() // otherwise the heap has garbage, and its collection makes room
	for _, test := range []struct {
		name   string
		bounds bounds
		loop   func()
		want   string
	}{
		{"time", bounds{10 * time.Millisecond, 1 << 40}, func() { time.Sleep(time.Millisecond) }, "no progress for 10ms after byte 12"},
		{"memory", bounds{2 * time.Minute, heap() + 32<<20}, func() func() {
			var held [][]byte
			return func() {
				if len(held) < 100 {
					held = append(held, bytes.Repeat([]byte{1}, 1<<20))
				}
			}
		}(), "MiB after byte 12"},
	} {
		err := test.bounds.replayed(file, func(in io.Reader) error {
			if _, err := io.ReadAll(in); err != nil {
				return err
			}
			for looping() {
				test.loop()
			}
			return nil
		})
		if !errors.Is(err, errForged) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

// A file that is not a recording is refused by its first bytes, however long it is. A slowly arriving recording is not.
func TestOnlyRecordingsAreRead(t *testing.T) {
	var stdout, stderr bytes.Buffer
	if code := runReplay([]string{"/dev/zero"}, &stdout, &stderr); code != 1 || !strings.Contains(stderr.String(), "not a recording") {
		t.Errorf("exit code %d: %s", code, &stderr)
	}
	stderr.Reset()
	if code := runExplain([]string{"/dev/zero", "--request", "1"}, &stdout, &stderr); code != 1 || !strings.Contains(stderr.String(), "not a recording") {
		t.Errorf("exit code %d: %s", code, &stderr)
	}
	slow := filepath.Join(t.TempDir(), "slow")
	if err := syscall.Mkfifo(slow, 0o600); err != nil {
		t.Fatal(err)
	}
	go func() {
		pipe, err := os.OpenFile(slow, os.O_WRONLY, 0)
		if err != nil {
			t.Error(err)
			return
		}
		time.Sleep(60 * memoryCheck)
		_, _ = io.WriteString(pipe, "late")
		_ = pipe.Close()
	}()
	err := bounds{40 * memoryCheck, 1 << 40}.replayed(slow, func(in io.Reader) error {
		text, err := io.ReadAll(in)
		if string(text) != "late" {
			t.Errorf("got %q (%v)", text, err)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// A recording in memory has a bound in time, too.
func TestForgedRecordingInMemory(t *testing.T) {
	end := make(chan struct{})
	defer close(end)
	err := bounds{10 * time.Millisecond, 1 << 40}.within(7, func() error { <-end; return nil })
	if !errors.Is(err, errForged) || !strings.Contains(err.Error(), "no progress for 10ms after byte 7") {
		t.Errorf("%v", err)
	}
}
